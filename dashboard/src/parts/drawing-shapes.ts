/** A shape of a drawing; its class has the color. */
export type Shape =
  | { readonly kind: "rect"; readonly name: string; readonly at: readonly [x: number, y: number, w: number, h: number] }
  | { readonly kind: "circle"; readonly name: string; readonly at: readonly [x: number, y: number, r: number] }
  | {
      readonly kind: "line";
      readonly name: string;
      readonly at: readonly [x1: number, y1: number, x2: number, y2: number];
    }
  | {
      readonly kind: "text";
      readonly name: string;
      readonly at: readonly [x: number, y: number];
      readonly text: string;
    };

/** A picture of an environment's state, in units of a tile. */
export interface Drawing {
  /** Sentence for screen readers. */
  readonly label: string;
  readonly width: number;
  readonly height: number;
  readonly shapes: readonly Shape[];
}

export const rect = (name: string, x: number, y: number, w = 1, h = 1): Shape => ({
  kind: "rect",
  name,
  at: [x, y, w, h],
});
export const circle = (name: string, x: number, y: number, r: number): Shape => ({
  kind: "circle",
  name,
  at: [x, y, r],
});
export const label = (name: string, x: number, y: number, text: string): Shape => ({
  kind: "text",
  name,
  at: [x, y],
  text,
});

/** Tiles of a picture; a larger map is shown as text. */
export const MAX_TILES = 1_000;
