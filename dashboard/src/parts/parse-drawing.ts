import { circle, label, MAX_TILES, rect, type Drawing } from "./drawing-shapes.js";
import { parseBabyAi, parseBoard } from "./parse-grid-drawing.js";

/**
 * Returns a picture of a state of a built-in environment that has one; undefined for any other
 * text.
 */
export function parseDrawing(render: string | null, observation: string | null): Drawing | undefined {
  const cart = parseCartPole(observation ?? "");
  if (cart !== undefined) return cart;
  const text = render ?? observation ?? "";
  return (
    parseBlackjack(text) ??
    parseTaxi(text) ??
    parseTiles(text) ??
    parseBabyAi(text) ??
    parseBoard(text) ??
    parseSokoban(text)
  );
}

const TILE_NAMES: Readonly<Record<string, string>> = {
  S: "start",
  F: "ice",
  H: "water",
  G: "goal",
  C: "rock",
  ".": "grass",
  "@": "ice",
};

/** FrozenLake and CliffWalking: letters with a space before each. */
function parseTiles(text: string): Drawing | undefined {
  const rows = text.split("\n").map((line) => (/^(?: [SFHGC.@])+$/.test(line) ? line.replaceAll(" ", "") : ""));
  const [{ length: width }] = rows;
  if (width < 2 || rows.length * width > MAX_TILES || rows.some((row) => row.length !== width)) return undefined;
  const shapes = rows.flatMap((row, y) =>
    Array.from(row, (letter, x) => {
      const tile = rect(`tile-${TILE_NAMES[letter]}`, x, y);
      if (letter === "@") return [tile, circle("player", x + 0.5, y + 0.5, 0.3)];
      return "SGH".includes(letter) ? [tile, label("letter", x + 0.5, y + 0.5, letter)] : [tile];
    }).flat(),
  );
  const row = rows.findIndex((line) => line.includes("@"));
  const place = row < 0 ? "" : `, player at row ${row}, column ${rows[row].indexOf("@")}`;
  return { label: `Grid of ${rows.length} by ${width} tiles${place}`, width, height: rows.length, shapes };
}

/** Taxi: columns two characters apart, with walls between them; the ride is below. */
function parseTaxi(text: string): Drawing | undefined {
  const lines = text.split("\n");
  const map = lines.slice(1, 6);
  if (map.length < 5 || !/^\+-{9}\+$/.test(lines[0]) || !map.every((line) => /^\|.{9}\|$/.test(line))) return undefined;
  const shapes = map.flatMap((line, y) =>
    [0, 1, 2, 3, 4].flatMap((x) => {
      const letter = line[2 * x + 1];
      const wall = x > 0 && line[2 * x] === "|" ? [rect("wall", x - 0.06, y, 0.12, 1)] : [];
      if (letter === "@" || letter === "P")
        return [rect("tile-road", x, y), rect("taxi", x + 0.15, y + 0.25, 0.7, 0.5), ...wall].concat(
          letter === "P" ? circle("passenger", x + 0.5, y + 0.5, 0.14) : [],
        );
      if (letter === "p") return [rect("tile-goal", x, y), circle("passenger", x + 0.5, y + 0.5, 0.2), ...wall];
      return [
        rect(letter === " " ? "tile-road" : "tile-start", x, y),
        ...(letter === " " ? [] : [label("letter", x + 0.5, y + 0.5, letter)]),
        ...wall,
      ];
    }),
  );
  return { label: `Taxi: ${lines.at(-1)}`, width: 5, height: 5, shapes };
}

/**
 * Sokoban's usual characters: # wall, $ box, . goal, * box on a goal, @ player, + player on a goal.
 */
function parseSokoban(text: string): Drawing | undefined {
  const rows = text.split("\n").filter((line) => line.includes("#"));
  const width = Math.max(0, ...rows.map(({ length }) => length));
  if (
    rows.length < 3 ||
    rows.length * width > MAX_TILES ||
    !rows.every((row) => /^[#$.*@+ _-]+$/.test(row)) ||
    !/[@+]/.test(rows.join(""))
  )
    return undefined;
  const shapes = rows.flatMap((row, y) =>
    Array.from(row).flatMap((letter, x) => {
      const ground = rect(letter === "#" ? "tile-rock" : "tile-road", x, y);
      return [
        ground,
        ...(".*+".includes(letter) ? [rect("tile-goal", x + 0.3, y + 0.3, 0.4, 0.4)] : []),
        ...("$*".includes(letter) ? [rect("box", x + 0.15, y + 0.15, 0.7, 0.7)] : []),
        ...("@+".includes(letter) ? [circle("player", x + 0.5, y + 0.5, 0.3)] : []),
      ];
    }),
  );
  const boxes = rows.join("").replaceAll(/[^$*]/g, "");
  const placed = boxes.replaceAll("$", "").length;
  return { label: `Warehouse: ${placed} of ${boxes.length} boxes on goals`, width, height: rows.length, shapes };
}

const SUITS: Readonly<Record<string, string>> = { C: "♣", D: "♦", H: "♥", S: "♠" };

/** Blackjack: the dealer's open card and the hidden one or the whole hand, and the player's sum. */
function parseBlackjack(text: string): Drawing | undefined {
  const match = /^Dealer: (\w{1,2})([CDHS]) (\?\?|[\dA ]+ \((\d+)\))\nPlayer: (\d+)( \(usable ace\))?$/.exec(text);
  if (match === null) return undefined;
  const [, value, suit, rest, dealerSum, sum, ace = ""] = match;
  const others = rest === "??" ? ["?"] : rest.replace(/ \(\d+\)$/, "").split(" ");
  const cards = [value + SUITS[suit], ...others];
  const shapes = cards.flatMap((card, i) => [
    rect(card === "?" ? "card-back" : "card", 0.3 + 1.5 * i, 0.8, 1.3, 1.9),
    label("DH".includes(suit) && i === 0 ? "card-red" : "card-text", 0.95 + 1.5 * i, 1.75, card),
  ]);
  const width = Math.max(4, 0.4 + 1.5 * cards.length);
  return {
    label: text.replace("\n", ". "),
    width,
    height: 5,
    shapes: [
      rect("felt", 0, 0, width, 5),
      label("caption", width / 2, 0.4, dealerSum === undefined ? "Dealer" : `Dealer ${dealerSum}`),
      ...shapes,
      label("caption", width / 2, 3.2, `Player${ace}`),
      label("score", width / 2, 4.1, sum),
    ],
  };
}

/**
 * Cart-pole: the cart's place on its track of -2.4 to 2.4, and the pole's angle, positive to the
 * right.
 */
function parseCartPole(observation: string): Drawing | undefined {
  const match = /^Cart position: ([+-]?[\d.]+), [^\n]*\nPole angle: ([+-]?[\d.]+) rad/.exec(observation);
  if (match === null) return undefined;
  const [position, angle] = [Number(match[1]), Number(match[2])];
  const x = 2.5 + position;
  return {
    label: `Cart at ${match[1]}, pole at ${match[2]} rad`,
    width: 5,
    height: 2,
    shapes: [
      { kind: "line", name: "track", at: [0, 1.8, 5, 1.8] },
      { kind: "line", name: "track", at: [2.5, 1.8, 2.5, 1.92] },
      rect("cart", x - 0.3, 1.5, 0.6, 0.3),
      { kind: "line", name: "pole", at: [x, 1.5, x + 1.2 * Math.sin(angle), 1.5 - 1.2 * Math.cos(angle)] },
      circle("axle", x, 1.5, 0.07),
    ],
  };
}
