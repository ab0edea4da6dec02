import type { RenderFrame, RenderMode } from "../env.js";
import {
  createCircle,
  createPolygon,
  createRectangle,
  renderScene,
  type Color,
  type Drawing,
} from "../rendering/scene.js";
import { EMPTY, NO_OBJECT, WALL, type ColorName, type WorldObject, type World } from "./world.js";

const PAINT: Readonly<Record<ColorName, Color>> = {
  red: [205, 60, 60],
  green: [80, 165, 80],
  blue: [65, 105, 205],
  purple: [140, 80, 180],
  yellow: [225, 190, 60],
  grey: [140, 140, 145],
};
const WALL_COLOR: Color = [70, 75, 80];
const FLOOR: Color = [235, 235, 230];
const AGENT_COLOR: Color = [30, 30, 30];
const TILE_PIXELS = 24;
/** Letters of the colors on terminals; grey is W, so that no two are alike. */
const COLOR_LETTERS: Readonly<Record<ColorName, string>> = {
  red: "r",
  green: "g",
  blue: "b",
  purple: "p",
  yellow: "y",
  grey: "w",
};
const AGENT_SYMBOLS = [">>", "vv", "<<", "^^"];

/**
 * Draws the whole grid. On a terminal a cell has two characters: ##, .., the agent (>> vv << ^^),
 * or a thing.
 */
export function drawBabyAi(mode: RenderMode, world: World, mission: string): RenderFrame {
  return mode === "ansi" ? drawSymbols(world, mission) : drawPicture(world);
}

/**
 * A letter for kind and door state, and one for the color: Kb is a blue key, Dr a closed red door.
 */
function formatThing({ kind, color, state }: WorldObject): string {
  const doors = { open: "O", closed: "D", locked: "L" } as const;
  const letter = state === undefined ? { key: "K", ball: "B", box: "X", door: "D" }[kind] : doors[state];
  return letter + COLOR_LETTERS[color];
}

function drawSymbols({ width, height, cells, things, agent, carrying }: World, mission: string): string {
  const symbols = cells.map((content) =>
    content === WALL ? "##" : content === EMPTY ? ".." : formatThing(things[content]),
  );
  symbols[agent.y * width + agent.x] = AGENT_SYMBOLS[agent.direction];
  const rows = Array.from({ length: height }, (_, y) => symbols.slice(y * width, (y + 1) * width).join(""));
  const hands = carrying === NO_OBJECT ? "" : ` (carrying ${formatThing(things[carrying])})`;
  return `${rows.join("\n")}\n${mission}${hands}`;
}

function drawPicture({ width, height, cells, things, agent, carrying }: World): RenderFrame {
  const drawings = cells.flatMap((content, cell): Drawing[] => {
    const [left, top] = [cell % width, height - Math.floor(cell / width)];
    if (content === WALL) return [createPolygon(createRectangle(left, top - 1, left + 1, top), WALL_COLOR)];
    return content === EMPTY ? [] : drawThing(things[content], left + 0.5, top - 0.5);
  });
  const [x, y] = [agent.x + 0.5, height - agent.y - 0.5];
  const turn = ([dx, dy]: readonly [number, number]) => {
    const angle = (-agent.direction * Math.PI) / 2;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    return [x + dx * cos - dy * sin, y + dx * sin + dy * cos] as const;
  };
  const corners = (
    [
      [0.38, 0],
      [-0.32, 0.32],
      [-0.32, -0.32],
    ] as const
  ).map(turn);
  return renderScene("rgb_array", {
    left: 0,
    right: width,
    bottom: 0,
    top: height,
    pixels: { width: TILE_PIXELS * width, height: TILE_PIXELS * height },
    cells: { width: 0, height: 0 },
    background: FLOOR,
    drawings: [
      ...drawings,
      createPolygon(corners, AGENT_COLOR),
      ...(carrying === NO_OBJECT ? [] : [createCircle([x, y], 0.14, PAINT[things[carrying].color])]),
    ],
  });
}

function drawThing({ kind, color, state }: WorldObject, x: number, y: number): Drawing[] {
  const paint = PAINT[color];
  const createSquare = (half: number, fill: Color) =>
    createPolygon(createRectangle(x - half, y - half, x + half, y + half), fill);
  switch (kind) {
    case "ball":
      return [createCircle([x, y], 0.32, paint)];
    case "box":
      return [createSquare(0.34, paint), createSquare(0.22, FLOOR)];
    case "key":
      return [
        createCircle([x, y + 0.18], 0.18, paint),
        createPolygon(createRectangle(x - 0.06, y - 0.4, x + 0.06, y + 0.1), paint),
        createPolygon(createRectangle(x, y - 0.4, x + 0.2, y - 0.28), paint),
      ];
    case "door":
      return state === "open"
        ? [createPolygon(createRectangle(x - 0.5, y - 0.5, x - 0.34, y + 0.5), paint)]
        : [
            createSquare(0.5, paint),
            createSquare(0.36, state === "locked" ? WALL_COLOR : FLOOR),
            createSquare(0.12, paint),
          ];
  }
}
