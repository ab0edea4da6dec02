import { isInside, type Scene, type Shape } from "./scene.js";

/** Puts a glyph at a place of the scene; what lies outside is left out. */
type Plot = (x: number, y: number, glyph: string) => void;

/** A scene as lines of text, without colours; trailing spaces are left out. */
export function drawText(scene: Scene): string {
  const { width, height } = scene.cells;
  const perX = width / (scene.right - scene.left);
  const perY = height / (scene.top - scene.bottom);
  const rows = Array.from({ length: height }, () => Array.from({ length: width }, () => " "));
  const plot: Plot = (x, y, glyph) => {
    const column = Math.floor((x - scene.left) * perX);
    const row = Math.floor((scene.top - y) * perY);
    if (row >= 0 && row < height && column >= 0 && column < width) rows[row][column] = glyph;
  };
  for (const shape of scene.shapes) drawShape(shape, scene, perX, perY, plot);
  return rows.map((row) => row.join("").trimEnd()).join("\n");
}

function drawShape(shape: Shape, scene: Scene, perX: number, perY: number, plot: Plot): void {
  if (shape.kind === "text") {
    const start = shape.centre[0] - (shape.text.length - 1) / 2 / perX;
    Array.from(shape.text).forEach((letter, i) => plot(start + i / perX, shape.centre[1], letter));
    return;
  }
  const { glyph } = shape;
  if (glyph === undefined) return;
  if (shape.kind === "line") {
    const [x0, y0] = shape.from;
    const [x1, y1] = shape.to;
    const steps = Math.ceil(2 * Math.max(Math.abs(x1 - x0) * perX, Math.abs(y1 - y0) * perY)) || 1;
    for (let i = 0; i <= steps; i++) plot(x0 + ((x1 - x0) * i) / steps, y0 + ((y1 - y0) * i) / steps, glyph);
    return;
  }
  if (shape.kind === "circle") plot(...shape.centre, glyph);
  for (let row = 0; row < scene.cells.height; row++) {
    const y = scene.top - (row + 0.5) / perY;
    for (let column = 0; column < scene.cells.width; column++) {
      const x = scene.left + (column + 0.5) / perX;
      const covered =
        shape.kind === "polygon"
          ? isInside(shape.points, x, y)
          : (x - shape.centre[0]) ** 2 + (y - shape.centre[1]) ** 2 <= shape.radius ** 2;
      if (covered) plot(x, y, glyph);
    }
  }
}
