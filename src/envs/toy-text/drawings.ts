import type { RenderFrame, RenderMode } from "../env.js";
import { createCircle, createPolygon, createRectangle, createText, renderScene } from "../rendering/scene.js";
import type { Color, Drawing, Scene } from "../rendering/scene.js";
import type { BlackjackObservation } from "./blackjack-text.js";
import { tabulate } from "./tabular-env.js";
import {
  CLIFF_COLUMNS,
  CLIFF_GOAL,
  CLIFF_ROWS,
  CLIFF_START,
  IN_TAXI,
  isCliff,
  STOP_POSITIONS,
  STOPS,
  TAXI_MAP,
  TAXI_SIZE,
  type TaxiState,
} from "./grids.js";

const WHITE: Color = [255, 255, 255];
const BLACK: Color = [20, 20, 20];
const ICE: Color = [205, 228, 242];
const WATER: Color = [40, 80, 130];
const GRASS: Color = [150, 190, 110];
const ROCK: Color = [110, 85, 70];
const GOAL: Color = [240, 200, 70];
const START: Color = [180, 215, 180];
const PLAYER: Color = [200, 60, 60];
const FELT: Color = [40, 120, 70];
const TILE_PIXELS = 48;

interface Tile {
  readonly color: Color;
  readonly letter: string;
}

/**
 * Tiles row by row, each one unit wide, with the player on one of them. On a terminal the player is
 * an @.
 */
function createTileScene(rows: number, columns: number, tile: (state: number) => Tile, player: number): Scene {
  const drawings = tabulate(rows * columns, (state): Drawing[] => {
    const left = state % columns;
    const top = rows - Math.floor(state / columns);
    const { color, letter } = tile(state);
    const tileCenter = [left + 0.5, top - 0.5] as const;
    const square = createPolygon(createRectangle(left + 0.02, top - 0.98, left + 0.98, top - 0.02), color);
    if (state !== player) return [square, createText(tileCenter, letter, 0.35, BLACK)];
    // The font has no @, which therefore appears on terminals only.
    return [square, createCircle(tileCenter, 0.3, PLAYER), createText(tileCenter, "@", 0.35, PLAYER)];
  });
  return {
    left: 0,
    right: columns,
    bottom: 0,
    top: rows,
    pixels: { width: TILE_PIXELS * columns, height: TILE_PIXELS * rows },
    cells: { width: 2 * columns, height: rows },
    background: WHITE,
    drawings: drawings.flat(),
  };
}

/** The map with the player on it. */
export function drawFrozenLake(mode: RenderMode, desc: readonly string[], state: number): RenderFrame {
  const colors: Readonly<Record<string, Color>> = { S: START, F: ICE, H: WATER, G: GOAL };
  const letters = desc.join("");
  const tile = (index: number) => ({ color: colors[letters[index]], letter: letters[index] });
  return renderScene(mode, createTileScene(desc.length, desc[0].length, tile, state));
}

/** The ground (.), the cliff (C), start (S) and goal (G) with the walker. */
export function drawCliffWalking(mode: RenderMode, state: number): RenderFrame {
  const tile = (index: number): Tile => {
    if (isCliff(index)) return { color: ROCK, letter: "C" };
    if (index === CLIFF_GOAL) return { color: GOAL, letter: "G" };
    return index === CLIFF_START ? { color: START, letter: "S" } : { color: GRASS, letter: "." };
  };
  return renderScene(mode, createTileScene(CLIFF_ROWS, CLIFF_COLUMNS, tile, state));
}

const ACTION_NAMES = ["South", "North", "East", "West", "Pick up", "Drop off"];
const STOP_COLORS: readonly Color[] = [
  [220, 70, 60],
  [70, 160, 70],
  [220, 190, 60],
  [70, 100, 200],
];

/**
 * The town, its walls and stops. On a terminal the taxi is [ ] when empty and [P] with the
 * passenger, a waiting passenger is p, the destination is in brackets below.
 */
export function drawTaxi(mode: RenderMode, taxi: TaxiState, lastAction: number | undefined): RenderFrame {
  if (mode === "ansi") return renderTaxiText(taxi, lastAction);
  const center = (row: number, column: number) => [column + 0.5, TAXI_SIZE - row - 0.5] as const;
  const stops = STOP_POSITIONS.flatMap(([row, column], stop): Drawing[] => {
    const [x, y] = center(row, column);
    const color = STOP_COLORS[stop];
    const createSquare = (half: number, fill: Color) =>
      createPolygon(createRectangle(x - half, y - half, x + half, y + half), fill);
    return [
      createSquare(0.45, color),
      createSquare(0.36, stop === taxi.destination ? GOAL : WHITE),
      createText([x - 0.2, y + 0.18], STOPS[stop], 0.25, color),
      ...(stop === taxi.passenger ? [createCircle([x + 0.18, y - 0.15], 0.13, BLACK)] : []),
    ];
  });
  const walls = tabulate(TAXI_SIZE * (TAXI_SIZE - 1), (i): Drawing[] => {
    const [row, column] = [Math.floor(i / (TAXI_SIZE - 1)), i % (TAXI_SIZE - 1)];
    if (TAXI_MAP[1 + row][2 * column + 2] !== "|") return [];
    const [x, y] = [column + 1, TAXI_SIZE - row];
    return [createPolygon(createRectangle(x - 0.05, y - 1, x + 0.05, y), BLACK)];
  });
  const [x, y] = center(taxi.row, taxi.column);
  const taxiDrawings: Drawing[] = [
    createPolygon(createRectangle(x - 0.32, y - 0.2, x + 0.32, y + 0.2), [245, 190, 40]),
    createCircle([x, y], 0.13, taxi.passenger === IN_TAXI ? BLACK : WHITE),
  ];
  return renderScene(mode, {
    left: 0,
    right: TAXI_SIZE,
    bottom: 0,
    top: TAXI_SIZE,
    pixels: { width: TILE_PIXELS * TAXI_SIZE, height: TILE_PIXELS * TAXI_SIZE },
    cells: { width: 0, height: 0 },
    background: [225, 225, 225],
    drawings: [...stops, ...walls.flat(), ...taxiDrawings],
  });
}

function renderTaxiText({ row, column, passenger, destination }: TaxiState, lastAction: number | undefined): string {
  const lines = TAXI_MAP.map((line) => Array.from(line));
  if (passenger !== IN_TAXI) {
    const [stopRow, stopColumn] = STOP_POSITIONS[passenger];
    lines[1 + stopRow][2 * stopColumn + 1] = "p";
  }
  lines[1 + row][2 * column + 1] = passenger === IN_TAXI ? "P" : "@";
  const ride = `${passenger === IN_TAXI ? "passenger in taxi" : `passenger at ${STOPS[passenger]}`}, to ${STOPS[destination]}`;
  const action = lastAction === undefined ? "" : ` (${ACTION_NAMES[lastAction]})`;
  return `${lines.map((line) => line.join("")).join("\n")}\n${ride}${action}`;
}

/**
 * Draws the dealer's open card, the hidden one or, at the end of an episode, the whole hand, and
 * the player's sum.
 */
export function drawBlackjack(
  mode: RenderMode,
  [sum, , usableAce]: BlackjackObservation,
  openCard: string,
  dealerHand: { readonly cards: readonly number[]; readonly sum: number } | undefined,
): RenderFrame {
  const hidden = dealerHand?.cards.slice(1).map((card) => (card === 1 ? "A" : String(card)));
  if (mode === "ansi") {
    const dealer = dealerHand === undefined ? "??" : `${hidden?.join(" ")} (${dealerHand.sum})`;
    return `Dealer: ${openCard} ${dealer}\nPlayer: ${sum}${usableAce === 1 ? " (usable ace)" : ""}`;
  }
  const drawCard = (left: number, color: Color, text: string): Drawing[] => [
    createPolygon(createRectangle(left, 4.2, left + 2.4, 7.6), color),
    createText([left + 1.2, 5.9], text, 0.9, BLACK),
  ];
  return renderScene(mode, {
    left: 0,
    right: 8,
    bottom: 0,
    top: 9,
    pixels: { width: 320, height: 360 },
    cells: { width: 0, height: 0 },
    background: FELT,
    drawings: [
      createText([4, 8.3], dealerHand === undefined ? "DEALER" : `DEALER ${dealerHand.sum}`, 0.6, WHITE),
      ...drawCard(1.2, WHITE, openCard),
      ...drawCard(4.4, dealerHand === undefined ? [150, 60, 60] : WHITE, hidden?.join(" ") ?? "?"),
      createText([4, 3.4], "PLAYER", 0.6, WHITE),
      createText([4, 2], String(sum), 1.6, WHITE),
      ...(usableAce === 1 ? [createText([4, 0.6], "USABLE ACE", 0.5, GOAL)] : []),
    ],
  });
}
