// Mouse, pen and touch on a canvas as a few gestures.

const CLICK_TRAVEL_MAX = 4;

/**
 * Calls those handlers that are given; places are pixels of the canvas.
 *
 * - `hover(x, y, event)`, `leave()`: a mouse without a pressed button.
 * - `press(x, y, event)`, `drag(right, down, x, y, event)`, `release(x, y, isDragged)`: one pointer.
 * - `click(x, y, event)`, `doubleClick(x, y)`
 * - `pinch(factor, x, y, right, down)`: two fingers.
 * - `turn(factor, x, y, event)`: the wheel; above 1 enlarges.
 *
 * Whether one finger scrolls the page is said by `touch-action` of the canvas.
 */
export function watchGestures(canvas, handlers) {
  const pointers = new Map();
  let [travelled, grip, hadTwo] = [0, null, false];
  const isDragged = () => travelled > CLICK_TRAVEL_MAX && !hadTwo;

  canvas.addEventListener("pointerdown", event => {
    if (event.button !== 0) return;
    const place = placeOf(canvas, event);
    pointers.set(event.pointerId, place);
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch {
      // The pointer has gone since.
    }
    hadTwo = pointers.size > 1;
    if (hadTwo) {
      grip = gripOf(pointers);
    } else {
      travelled = 0;
      handlers.press?.(...place, event);
    }
  });

  canvas.addEventListener("pointermove", event => {
    const [place, before] = [placeOf(canvas, event), pointers.get(event.pointerId)];
    if (!before) {
      if (event.pointerType === "mouse") handlers.hover?.(...place, event);
      return;
    }
    pointers.set(event.pointerId, place);
    if (pointers.size === 2) {
      const now = gripOf(pointers);
      handlers.pinch?.(now.span / grip.span, now.x, now.y, now.x - grip.x, now.y - grip.y);
      grip = now;
      return;
    }
    const [right, down] = [place[0] - before[0], place[1] - before[1]];
    travelled += Math.abs(right) + Math.abs(down);
    if (isDragged()) handlers.drag?.(right, down, ...place, event);
  });

  const release = event => {
    if (!pointers.delete(event.pointerId)) return;
    const isUp = event.type === "pointerup";
    if (isUp && !hadTwo && !isDragged()) handlers.click?.(...placeOf(canvas, event), event);
    if (!pointers.size) handlers.release?.(...placeOf(canvas, event), isUp && isDragged());
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => {
    if (!pointers.size) handlers.leave?.();
  });
  canvas.addEventListener("dblclick", event => handlers.doubleClick?.(...placeOf(canvas, event)));
  // Else the browser takes two fingers for its own zoom.
  for (const type of ["touchstart", "touchmove"]) {
    canvas.addEventListener(type, event => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault();
    }, { passive: false });
  }
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const pixels = (event.deltaY || event.deltaX) * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1);
    handlers.turn?.(Math.exp(-Math.max(-400, Math.min(400, pixels)) * 0.0016), ...placeOf(canvas, event), event);
  }, { passive: false });
}

function placeOf(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function gripOf(pointers) {
  const [[ax, ay], [bx, by]] = [...pointers.values()];
  return { x: (ax + bx) / 2, y: (ay + by) / 2, span: Math.max(1, Math.hypot(ax - bx, ay - by)) };
}
