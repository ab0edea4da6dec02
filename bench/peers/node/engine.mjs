// node-llama-cpp's side of the bench engine: tokens sampled after a prompt, each row in a sequence
// of one context.
import { getContext, serve } from "./llama.mjs";

/** Samples `count` tokens in each sequence, after the prompt's last token. */
async function sample(sequence, last, count, options) {
  let sampled = 0;
  for await (const _ of sequence.evaluate([last], { ...options, yieldEogToken: true })) if (++sampled === count) break;
  if (sampled !== count) throw new Error(`${sampled} tokens instead of ${count}`);
}

await serve(async ({ rows, prompt, new_tokens: newTokens, temperature, top_p: topP, repeat }) => {
  const context = await getContext(rows);
  const seconds = [];
  for (let run = 0; run < repeat; run++) {
    const sequences = Array.from({ length: rows }, () => context.getSequence());
    for (const sequence of sequences) await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1));
    const start = performance.now();
    const options = { temperature, topP, topK: 0 };
    await Promise.all(sequences.map((sequence) => sample(sequence, prompt.at(-1), newTokens, options)));
    seconds.push((performance.now() - start) / 1000);
    for (const sequence of sequences) sequence.dispose();
  }
  return { seconds, count: rows * newTokens };
});
