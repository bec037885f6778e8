// Map tiles of a server that a person asked for. Nothing is loaded before `draw` is called.

const KEPT_MAX = 600;

export class Tiles {
  #template;
  #attribution;
  #loaded;
  #images = new Map();

  /** @param {string} template address with `{z}`, `{x}` and `{y}`. @param {function} loaded is called when a tile has come. */
  constructor(template, attribution, loaded) {
    [this.#template, this.#attribution, this.#loaded] = [template, attribution, loaded];
  }

  draw(canvas, view) {
    const zoom = Math.max(0, Math.min(19, Math.round(Math.log2(view.scale / 256))));
    const [count, left, top] = [2 ** zoom, view.x(0), view.y(0)];
    const size = view.scale / count;
    for (let column = Math.floor(-left / size); column * size + left < view.width; column += 1) {
      for (let row = Math.max(0, Math.floor(-top / size)); row < count && row * size + top < view.height; row += 1) {
        const image = this.#image(zoom, (column % count + count) % count, row);
        if (image.complete && image.naturalWidth) canvas.drawImage(image, left + column * size, top + row * size, size + 0.5, size + 0.5);
      }
    }
    // Tiles are made for light pages: the colour of the map over them makes them fit, and the track stand out.
    canvas.globalAlpha = 0.35;
    canvas.fillStyle = view.colour("--map");
    canvas.fillRect(0, 0, view.width, view.height);
    canvas.globalAlpha = 1;
    canvas.font = "10.5px sans-serif";
    canvas.fillStyle = view.colour("--ink");
    canvas.fillText(this.#attribution, 14, view.height - 40);
  }

  #image(zoom, x, y) {
    const address = this.#template.replace("{z}", zoom).replace("{x}", x).replace("{y}", y);
    let image = this.#images.get(address);
    if (!image) {
      if (this.#images.size >= KEPT_MAX) this.#images.clear();
      image = new Image();
      image.onload = this.#loaded;
      image.src = address;
      this.#images.set(address, image);
    }
    return image;
  }
}
