/** Red, green and blue, 0 to 255. */
export type Color = readonly [red: number, green: number, blue: number];
export type Point = readonly [x: number, y: number];

interface DrawingStyle {
  readonly color: Color;
  /** Character for terminals; shapes without one appear in images only. */
  readonly glyph?: string;
}

/** A shape in scene coordinates, y pointing up; text has height `size` and is centered. */
export type Drawing = DrawingStyle &
  (
    | { readonly kind: "polygon"; readonly points: readonly Point[] }
    | { readonly kind: "circle"; readonly center: Point; readonly radius: number }
    | { readonly kind: "line"; readonly from: Point; readonly to: Point; readonly width: number }
    | { readonly kind: "text"; readonly center: Point; readonly text: string; readonly size: number }
  );

/** A picture to draw in pixels or characters; later shapes cover earlier ones. */
export interface Scene {
  readonly left: number;
  readonly right: number;
  readonly bottom: number;
  readonly top: number;
  /** Size of the image. */
  readonly pixels: { readonly width: number; readonly height: number };
  /** Size of the terminal output. */
  readonly cells: { readonly width: number; readonly height: number };
  readonly background: Color;
  readonly drawings: readonly Drawing[];
}

/** Returns the polygon of a rectangle. */
export function createRectangle(left: number, bottom: number, right: number, top: number): Point[] {
  return [
    [left, bottom],
    [right, bottom],
    [right, top],
    [left, top],
  ];
}

/** Returns the polygon of a line with a width. */
export function outlineLine([x0, y0]: Point, [x1, y1]: Point, width: number): Point[] {
  const length = Math.hypot(x1 - x0, y1 - y0) || 1;
  const dx = ((y0 - y1) / length) * (width / 2);
  const dy = ((x1 - x0) / length) * (width / 2);
  return [
    [x0 + dx, y0 + dy],
    [x1 + dx, y1 + dy],
    [x1 - dx, y1 - dy],
    [x0 - dx, y0 - dy],
  ];
}

/** Returns whether a point is inside a polygon (an odd number of edges to its right). */
export function isInsidePolygon(points: readonly Point[], x: number, y: number): boolean {
  let isInside = false;
  for (let i = 0, j = points.length - 1; i < points.length; j = i++) {
    const [xi, yi] = points[i];
    const [xj, yj] = points[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) isInside = !isInside;
  }
  return isInside;
}
