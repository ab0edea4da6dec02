import type { RgbImage } from "../env.js";
import { GLYPH_HEIGHT, GLYPH_WIDTH, hasDot } from "./font.js";
import { isInsidePolygon, outlineLine, type Color, type Scene, type Drawing } from "./scene.js";

/** A color, its bounding box in the scene, and a test for the points inside. */
interface Area {
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  readonly top: number;
  covers(x: number, y: number): boolean;
}

function computeArea(drawing: Drawing): Area {
  switch (drawing.kind) {
    case "circle": {
      const { center, radius } = drawing;
      const [x, y] = center;
      const covers = (px: number, py: number) => (px - x) ** 2 + (py - y) ** 2 <= radius ** 2;
      return { left: x - radius, right: x + radius, bottom: y - radius, top: y + radius, covers };
    }
    case "text": {
      const dot = drawing.size / GLYPH_HEIGHT;
      const advance = GLYPH_WIDTH + 1;
      const width = (drawing.text.length * advance - 1) * dot;
      const left = drawing.center[0] - width / 2;
      const top = drawing.center[1] + drawing.size / 2;
      const covers = (px: number, py: number) => {
        const column = Math.floor((px - left) / dot);
        return hasDot(
          drawing.text[Math.floor(column / advance)] ?? " ",
          column % advance,
          Math.floor((top - py) / dot),
        );
      };
      return { left, right: left + width, bottom: top - drawing.size, top, covers };
    }
    default: {
      const points = drawing.kind === "polygon" ? drawing.points : outlineLine(drawing.from, drawing.to, drawing.width);
      const xs = points.map(([x]) => x);
      const ys = points.map(([, y]) => y);
      const covers = (x: number, y: number) => isInsidePolygon(points, x, y);
      return { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys), covers };
    }
  }
}

/** Rasterizes a scene; each pixel has the color of the topmost shape at its center. */
export function drawPixels(scene: Scene): RgbImage {
  const { width, height } = scene.pixels;
  const data = new Uint8Array(width * height * 3);
  const paint = (pixel: number, color: Color) => data.set(color, 3 * pixel);
  for (let pixel = 0; pixel < width * height; pixel++) paint(pixel, scene.background);
  const pixelsPerUnitX = width / (scene.right - scene.left);
  const pixelsPerUnitY = height / (scene.top - scene.bottom);
  for (const drawing of scene.drawings) {
    const area = computeArea(drawing);
    const firstColumn = Math.max(0, Math.floor((area.left - scene.left) * pixelsPerUnitX));
    const lastColumn = Math.min(width - 1, Math.ceil((area.right - scene.left) * pixelsPerUnitX));
    const firstRow = Math.max(0, Math.floor((scene.top - area.top) * pixelsPerUnitY));
    const lastRow = Math.min(height - 1, Math.ceil((scene.top - area.bottom) * pixelsPerUnitY));
    for (let row = firstRow; row <= lastRow; row++) {
      const y = scene.top - (row + 0.5) / pixelsPerUnitY;
      for (let column = firstColumn; column <= lastColumn; column++) {
        const x = scene.left + (column + 0.5) / pixelsPerUnitX;
        if (area.covers(x, y)) paint(row * width + column, drawing.color);
      }
    }
  }
  return { width, height, data };
}
