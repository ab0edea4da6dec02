import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeChunk } from "../../src/rl/tracking/rollouts/chunk.js";
import { recordedEpisode, recordedTurn } from "./recorded-episode.js";

/** Markup, script and terminal codes, which must be shown as text. */
export const HOSTILE = `<script>window.hacked = 1</script><img src=x onerror="window.hacked=1">\u001b[31mred\u001b[0m\u001b]0;title\u0007`;

/** Writes a run folder with one recorded episode of `tokenCount` tokens; every text is HOSTILE. */
export async function writeHostileRun(folder: string, env: string, tokenCount: number, notes: object): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "config.json"), JSON.stringify({ version: 2, env, model: HOSTILE, algorithm: "ppo" }));
  await writeFile(join(folder, "metrics.jsonl"), `${JSON.stringify({ step: 1, num_turns: 8, loss: 1 })}\n`);
  await writeFile(join(folder, "notes.json"), JSON.stringify({ version: 1, ...notes }));
  const tokens = Array.from({ length: tokenCount }, (_, i) => 2 + (i % 2));
  const turn = recordedTurn({
    observation: HOSTILE,
    render: HOSTILE,
    prompt: [1, 0],
    tokens,
    text: HOSTILE,
    extraction: "parser",
    action: HOSTILE,
    value: 0.5,
    advantage: 0.5,
    logProbs: tokens.map((_, i) => -(i % 7)),
    marks: "t".repeat(tokenCount),
  });
  const vocabulary = { texts: { 0: HOSTILE, 1: "<|start|>", 2: " <b>word</b>", 3: "\u001b[2J\n" }, special: [1] };
  await writeFile(
    join(folder, "rollouts.jsonl"),
    await encodeChunk(1, { episodes: [recordedEpisode(1, turn)], vocabulary }),
  );
}
