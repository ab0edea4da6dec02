import { expect, it } from "vitest";
import { showEnvName } from "../dashboard/src/format.js";
import { layoutTokens } from "../dashboard/src/text/token-layout.js";
import { recordedEpisode, recordedTurn } from "./support/recorded-episode.js";

it("puts each message of a prompt on its own line where special tokens are hidden", () => {
  const detail = {
    ...recordedEpisode(1, recordedTurn({ prompt: [9, 1, 9, 9, 2, 3, 9], tokens: [4, 9] })),
    vocabulary: { texts: { 1: "system", 2: "user ", 3: "text", 4: "hit", 9: "<|im_end|>" }, special: [9] },
  };
  const lines = (showSpecial: boolean) =>
    layoutTokens(detail, (token) => (detail.vocabulary.texts as Record<number, string>)[token], {
      columns: 80,
      showPrompt: true,
      showSpecial,
    }).map(({ kind, start, end }) => [kind, start, end]);
  expect(lines(false)).toEqual([
    ["head", 0, 0],
    ["prompt", 0, 3],
    ["prompt", 3, 7],
    ["completion", 0, 2],
  ]);
  expect(lines(true)).toEqual([
    ["head", 0, 0],
    ["prompt", 0, 7],
    ["completion", 0, 2],
  ]);
});

it.each([
  ["Blackjack-v1", "Blackjack-v1"],
  ["/home/me/own-env.js", "own-env.js"],
  ["/home/me/envs.mjs:Maze-v0", "Maze-v0"],
  ["C:\\envs\\maze.js:Maze-v0", "Maze-v0"],
  ["mcp:node server.mjs --port 1", "mcp:node server.mjs --port 1"],
  ["https://example.org/env", "https://example.org/env"],
  [null, null],
])("shows the environment %s as %s", (env, shown) => {
  expect(showEnvName(env)).toBe(shown);
});
