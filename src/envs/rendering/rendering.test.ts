import { inflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { RgbImage } from "../env.js";
import { make } from "../registry/make.js";
import { drawPixels, drawText, createRectangle, type Scene } from "./scene.js";
import { encodePng } from "./png.js";

const scene = (drawings: Scene["drawings"]): Scene => ({
  left: 0,
  right: 10,
  bottom: 0,
  top: 5,
  pixels: { width: 10, height: 5 },
  cells: { width: 10, height: 5 },
  background: [255, 255, 255],
  drawings,
});

/** One character for each pixel: the shape's red value as a letter, a dot for the background. */
function sketch({ width, height, data }: RgbImage): string[] {
  const letter = (red: number) => (red === 255 ? "." : String.fromCharCode(red));
  return Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => letter(data[3 * (y * width + x)])).join(""),
  );
}

const color = (letter: string) => [letter.charCodeAt(0), 0, 0] as const;

describe("drawPixels", () => {
  it("fills the covered pixels, later shapes over earlier ones", () => {
    const image = drawPixels(
      scene([
        { kind: "polygon", points: createRectangle(1, 1, 9, 4), color: color("a") },
        { kind: "circle", center: [5, 2.5], radius: 1.2, color: color("b") },
        { kind: "line", from: [0, 4.5], to: [10, 4.5], width: 1, color: color("c") },
      ]),
    );
    expect(sketch(image)).toEqual(["cccccccccc", ".aaabbaaa.", ".aaabbaaa.", ".aaabbaaa.", ".........."]);
  });

  it("draws letters of three by five dots, and clips at the edge", () => {
    const image = drawPixels(
      scene([
        { kind: "text", center: [3.5, 2.5], text: "T1", size: 5, color: color("x") },
        { kind: "circle", center: [20, 2], radius: 2, color: color("y") },
      ]),
    );
    expect(sketch(image)).toEqual(["xxx..x....", ".x..xx....", ".x...x....", ".x...x....", ".x..xxx..."]);
  });
});

describe("drawText", () => {
  it("draws the same shapes in characters", () => {
    const text = drawText(
      scene([
        { kind: "polygon", points: createRectangle(1, 1, 9, 4), color: color("a"), glyph: "#" },
        { kind: "line", from: [0.5, 0.5], to: [9.5, 0.5], width: 1, color: color("c"), glyph: "-" },
        { kind: "text", center: [5, 4.5], text: "HI", size: 1, color: color("t") },
        { kind: "circle", center: [5.5, 2.5], radius: 0.4, color: color("b"), glyph: "o" },
      ]),
    );
    expect(text.split("\n")).toEqual(["    HI", " ########", " ####o###", " ########", "----------"]);
  });
});

describe("encodePng", () => {
  it("writes a file whose rows inflate to the pixels", () => {
    const image: RgbImage = { width: 2, height: 2, data: Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) };
    const png = Buffer.from(encodePng(image));
    expect(png.subarray(0, 8).toString("hex")).toBe("89504e470d0a1a0a");
    expect(png.subarray(12, 16).toString()).toBe("IHDR");
    expect([png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25]]).toEqual([2, 2, 8, 2]);
    const start = png.indexOf("IDAT");
    const rows = inflateSync(png.subarray(start + 4, start + 4 + png.readUInt32BE(start - 4)));
    expect([...rows]).toEqual([0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12]);
    // The checksum of an empty IEND chunk is always this.
    expect(png.subarray(-12).toString("hex")).toBe("0000000049454e44ae426082");
  });
});

describe("rendered text", () => {
  const show = (id: string, options = {}) => {
    const env = make(id, options);
    void env.reset({ seed: 0 });
    return (env.render("ansi") as string).split("\n");
  };

  it("shows the lake with the player as @", () => {
    expect(show("FrozenLake-v1")).toEqual(
      ["@ F F F", "F H F H", "F F F H", "H F F G"].map((row) => row.replace(/^/, " ")),
    );
  });

  it("shows the cart on its track with the pole upright", () => {
    const lines = show("CartPole-v1");
    const upright = lines.filter((line) => /^ {35,37}\|/.test(line)).length;
    expect(upright).toBeGreaterThan(5);
    expect(lines.some((line) => /^-+\^?-+$/.test(line))).toBe(true);
  });

  it("shows the town with walls, the taxi, the passenger and the ride", () => {
    const lines = show("Taxi-v4");
    expect(lines[0]).toBe("+---------+");
    expect(lines.join("")).toMatch(/@.*passenger at B, to Y/);
  });

  it("shows the dealer's open card and the player's sum", () => {
    expect(show("Blackjack-v1")).toEqual([expect.stringMatching(/^Dealer: [JQK][CDHS] \?\?$/), "Player: 11"]);
  });

  it("shows the dealer's whole hand when an episode of Blackjack has ended", async () => {
    const env = make("Blackjack-v1");
    await env.reset({ seed: 3 });
    await env.step(0);
    expect(await env.render("ansi")).toBe("Dealer: KC 2 10 (22)\nPlayer: 7");
    const restored = make("Blackjack-v1");
    restored.setState(env.getState());
    expect(await restored.unwrapped.render("ansi")).toBe("Dealer: KC 2 10 (22)\nPlayer: 7");
  });
});
