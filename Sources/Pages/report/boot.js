// Unpacks the script of the page, which takes a third of its bytes this way, and runs it. The page's policy names the hash of both.

/** @param {string} id of an element whose text is base64 of a zlib stream. @returns {Response} its bytes. */
function unpack(id) {
  const text = atob(document.getElementById(id).textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index += 1) packed[index] = text.charCodeAt(index);
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")));
}

/** Leaves the page as it is without scripts. */
function giveUp(error) {
  const reason = document.createElement("p");
  reason.className = "failure";
  reason.setAttribute("role", "alert");
  reason.textContent = `The map cannot be drawn: ${error.message}. The tables hold what was decided.`;
  document.getElementById("static").prepend(reason);
  delete document.documentElement.dataset.live;
  console.error(error);
}

(async () => {
  document.documentElement.dataset.live = "";
  try {
    const program = document.createElement("script");
    program.type = "module";
    program.textContent = await unpack("program").text();
    document.body.append(program);
  } catch (error) {
    giveUp(error);
  }
})();
