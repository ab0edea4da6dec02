import type { RgbImage } from "../env.js";
import { GLYPH_HEIGHT, GLYPH_WIDTH, hasDot } from "./font.js";
import { isInside, lineOutline, type Color, type Scene, type Shape } from "./scene.js";

/** A box in the scene and the test that says which of its points a colour covers. */
interface Area {
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  readonly top: number;
  covers(x: number, y: number): boolean;
}

function areaOf(shape: Shape): Area {
  switch (shape.kind) {
    case "circle": {
      const { centre, radius } = shape;
      const [x, y] = centre;
      const covers = (px: number, py: number) => (px - x) ** 2 + (py - y) ** 2 <= radius ** 2;
      return { left: x - radius, right: x + radius, bottom: y - radius, top: y + radius, covers };
    }
    case "text": {
      const dot = shape.size / GLYPH_HEIGHT;
      const advance = GLYPH_WIDTH + 1;
      const width = (shape.text.length * advance - 1) * dot;
      const left = shape.centre[0] - width / 2;
      const top = shape.centre[1] + shape.size / 2;
      const covers = (px: number, py: number) => {
        const column = Math.floor((px - left) / dot);
        return hasDot(shape.text[Math.floor(column / advance)] ?? " ", column % advance, Math.floor((top - py) / dot));
      };
      return { left, right: left + width, bottom: top - shape.size, top, covers };
    }
    default: {
      const points = shape.kind === "polygon" ? shape.points : lineOutline(shape.from, shape.to, shape.width);
      const xs = points.map(([x]) => x);
      const ys = points.map(([, y]) => y);
      const covers = (x: number, y: number) => isInside(points, x, y);
      return { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys), covers };
    }
  }
}

/** A scene as an image; a pixel takes the colour of what its middle lies in. */
export function drawPixels(scene: Scene): RgbImage {
  const { width, height } = scene.pixels;
  const data = new Uint8Array(width * height * 3);
  const paint = (pixel: number, color: Color) => data.set(color, 3 * pixel);
  for (let pixel = 0; pixel < width * height; pixel++) paint(pixel, scene.background);
  const perX = width / (scene.right - scene.left);
  const perY = height / (scene.top - scene.bottom);
  for (const shape of scene.shapes) {
    const area = areaOf(shape);
    const firstColumn = Math.max(0, Math.floor((area.left - scene.left) * perX));
    const lastColumn = Math.min(width - 1, Math.ceil((area.right - scene.left) * perX));
    const firstRow = Math.max(0, Math.floor((scene.top - area.top) * perY));
    const lastRow = Math.min(height - 1, Math.ceil((scene.top - area.bottom) * perY));
    for (let row = firstRow; row <= lastRow; row++) {
      const y = scene.top - (row + 0.5) / perY;
      for (let column = firstColumn; column <= lastColumn; column++) {
        const x = scene.left + (column + 0.5) / perX;
        if (area.covers(x, y)) paint(row * width + column, shape.color);
      }
    }
  }
  return { width, height, data };
}
