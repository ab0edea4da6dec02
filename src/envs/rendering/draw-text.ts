import { isInsidePolygon, type Scene, type Drawing } from "./scene.js";

/** Places a glyph at a position of the scene, unless it is outside. */
type Plot = (x: number, y: number, glyph: string) => void;

/** Renders a scene as lines of text, without colors or trailing spaces. */
export function drawText(scene: Scene): string {
  const { width, height } = scene.cells;
  const cellsPerUnitX = width / (scene.right - scene.left);
  const cellsPerUnitY = height / (scene.top - scene.bottom);
  const rows = Array.from({ length: height }, () => Array.from({ length: width }, () => " "));
  const plot: Plot = (x, y, glyph) => {
    const column = Math.floor((x - scene.left) * cellsPerUnitX);
    const row = Math.floor((scene.top - y) * cellsPerUnitY);
    if (row >= 0 && row < height && column >= 0 && column < width) rows[row][column] = glyph;
  };
  for (const drawing of scene.drawings) drawDrawing(drawing, scene, cellsPerUnitX, cellsPerUnitY, plot);
  return rows.map((row) => row.join("").trimEnd()).join("\n");
}

function drawDrawing(drawing: Drawing, scene: Scene, cellsPerUnitX: number, cellsPerUnitY: number, plot: Plot): void {
  if (drawing.kind === "text") {
    const start = drawing.center[0] - (drawing.text.length - 1) / 2 / cellsPerUnitX;
    Array.from(drawing.text).forEach((letter, i) => plot(start + i / cellsPerUnitX, drawing.center[1], letter));
    return;
  }
  const { glyph } = drawing;
  if (glyph === undefined) return;
  if (drawing.kind === "line") {
    const [x0, y0] = drawing.from;
    const [x1, y1] = drawing.to;
    const steps = Math.ceil(2 * Math.max(Math.abs(x1 - x0) * cellsPerUnitX, Math.abs(y1 - y0) * cellsPerUnitY)) || 1;
    for (let i = 0; i <= steps; i++) plot(x0 + ((x1 - x0) * i) / steps, y0 + ((y1 - y0) * i) / steps, glyph);
    return;
  }
  if (drawing.kind === "circle") plot(...drawing.center, glyph);
  for (let row = 0; row < scene.cells.height; row++) {
    const y = scene.top - (row + 0.5) / cellsPerUnitY;
    for (let column = 0; column < scene.cells.width; column++) {
      const x = scene.left + (column + 0.5) / cellsPerUnitX;
      const isCovered =
        drawing.kind === "polygon"
          ? isInsidePolygon(drawing.points, x, y)
          : (x - drawing.center[0]) ** 2 + (y - drawing.center[1]) ** 2 <= drawing.radius ** 2;
      if (isCovered) plot(x, y, glyph);
    }
  }
}
