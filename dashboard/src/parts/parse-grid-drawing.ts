import { circle, MAX_TILES, rect, type Drawing, type Shape } from "./drawing-shapes.js";

const PAINTS: Readonly<Record<string, string>> = {
  r: "paint-red",
  g: "paint-green",
  b: "paint-blue",
  p: "paint-purple",
  y: "paint-yellow",
  w: "paint-grey",
};
const AGENT = [">>", "vv", "<<", "^^"];

/** BabyAI: two characters for a cell, and the mission below. */
export function parseBabyAi(text: string): Drawing | undefined {
  const lines = text.split("\n");
  const rows = lines.slice(0, -1);
  const width = rows.length === 0 ? 0 : rows[0].length / 2;
  const isGrid = rows.every(
    (row) => row.length === 2 * width && /^(?:##|\.\.|>>|vv|<<|\^\^|[KBXODL][rgbpyw])+$/.test(row),
  );
  if (rows.length < 3 || !isGrid || rows.length * width > MAX_TILES) return undefined;
  const shapes = rows.flatMap((row, y) =>
    Array.from({ length: width }, (_, x) => drawCell(row.slice(2 * x, 2 * x + 2), x, y)).flat(),
  );
  return { label: `Rooms: ${lines.at(-1)}`, width, height: rows.length, shapes };
}

function drawCell(symbol: string, x: number, y: number): Shape[] {
  if (symbol === "##") return [rect("tile-rock", x, y)];
  const floor = rect("tile-road", x, y);
  const direction = AGENT.indexOf(symbol);
  if (direction >= 0) {
    const [dx, dy] = [
      [0.3, 0],
      [0, 0.3],
      [-0.3, 0],
      [0, -0.3],
    ][direction];
    return [floor, circle("walker", x + 0.5, y + 0.5, 0.3), circle("axle", x + 0.5 + dx, y + 0.5 + dy, 0.1)];
  }
  const paint = PAINTS[symbol[1]];
  switch (symbol[0]) {
    case "B":
      return [floor, circle(paint, x + 0.5, y + 0.5, 0.32)];
    case "X":
      return [floor, rect(paint, x + 0.18, y + 0.18, 0.64, 0.64), rect("tile-road", x + 0.3, y + 0.3, 0.4, 0.4)];
    case "K":
      return [floor, circle(paint, x + 0.5, y + 0.32, 0.18), rect(paint, x + 0.44, y + 0.4, 0.12, 0.5)];
    case "O":
      return [floor, rect(paint, x, y, 0.16, 1)];
    case "D":
    case "L":
      return [
        rect(paint, x, y),
        rect(symbol[0] === "L" ? "tile-rock" : "tile-road", x + 0.14, y + 0.14, 0.72, 0.72),
        circle(paint, x + 0.5, y + 0.5, 0.12),
      ];
    default:
      return [floor];
  }
}

/** Boards of tic-tac-toe and connect four: X, O and points with spaces in between. */
export function parseBoard(text: string): Drawing | undefined {
  const rows = text.split("\n").filter((line) => /^[XO.](?: [XO.])+$/.test(line));
  const width = rows.length === 0 ? 0 : (rows[0].length + 1) / 2;
  if (rows.length < 3 || rows.length * width > MAX_TILES || rows.some((row) => row.length !== rows[0].length))
    return undefined;
  const shapes = rows.flatMap((row, y) =>
    row.split(" ").flatMap((letter, x): Shape[] => {
      const tile = rect("tile-road", x + 0.03, y + 0.03, 0.94, 0.94);
      if (letter === ".") return [tile];
      return [tile, circle(letter === "X" ? "paint-red" : "paint-blue", x + 0.5, y + 0.5, 0.36)];
    }),
  );
  return { label: `Board of ${rows.length} by ${width}: ${rows.join(" / ")}`, width, height: rows.length, shapes };
}
