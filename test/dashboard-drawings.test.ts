import { describe, expect, it } from "vitest";
import { parseDrawing } from "../dashboard/src/parts/parse-drawing.js";
import { make, type Env } from "../src/envs.js";

/** Draws a state as the page does, from its rendering and its observation. */
async function draw(env: Env, observation: unknown) {
  const render = env.metadata.renderModes.includes("ansi") ? ((await env.render("ansi")) as string) : null;
  return parseDrawing(render, env.text!.formatObservation(observation, {}));
}

describe("pictures of the built-in environments", () => {
  it.each([
    ["FrozenLake-v1", "Grid of 4 by 4 tiles, player at row 0, column 0", "tile-water"],
    ["CliffWalking-v1", "Grid of 4 by 12 tiles, player at row 3, column 0", "tile-rock"],
    ["Taxi-v4", "Taxi: passenger", "taxi"],
    ["Blackjack-v1", "Dealer: ", "card-back"],
    ["CartPole-v1", "Cart at ", "pole"],
    ["Sokoban-v0", "Warehouse: 0 of 1 boxes on goals", "box"],
    ["BabyAI-GoToRedBallNoDists-v0", "Rooms: go to the red ball", "paint-red"],
    ["BabyAI-GoToDoor-v0", "Rooms: go to ", "walker"],
  ])("draws %s", async (id, label, shape) => {
    const env = make(id);
    const { observation } = await env.reset({ seed: 3 });
    const drawing = await draw(env, observation);
    expect(drawing?.label.startsWith(label)).toBe(true);
    expect(drawing?.shapes.map(({ name }) => name)).toContain(shape);
  });

  it("draws the dealer's cards at the end of a hand", () => {
    const drawing = parseDrawing("Dealer: KH 5 A 2 (18)\nPlayer: 19 (usable ace)", null);
    const texts = drawing!.shapes.flatMap((shape) => (shape.kind === "text" ? [shape.text] : []));
    expect(texts).toEqual(["Dealer 18", "K♥", "5", "A", "2", "Player (usable ace)", "19"]);
  });

  it("draws boxes, goals and the player of a warehouse", () => {
    const drawing = parseDrawing(null, "#####\n#@$.#\n#*  #\n#####");
    expect(drawing).toMatchObject({ label: "Warehouse: 1 of 2 boxes on goals", width: 5, height: 4 });
  });

  it.each([
    "",
    "\n\n",
    " S",
    "hello",
    "<script>alert(1)</script>",
    " S F\n S",
    "Dealer: KH",
    "+---------+",
    "#\n#\n#é",
  ])("leaves other text as text: %j", (text) => {
    expect(parseDrawing(text, null)).toBeUndefined();
    expect(parseDrawing(null, text)).toBeUndefined();
  });
});
