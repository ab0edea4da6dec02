// node-llama-cpp's side of the bench serve: the same chats, each in a sequence of one context,
// which batches them.
import { getContext, model, serve } from "./llama.mjs";

let round = 0;

async function ask(sequence, client, newTokens) {
  const content = `Request ${round}, client ${client}. Tell me a long story about a dealer, a player and a deck of cards.`;
  const system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n";
  const prompt = `${system}<|im_start|>user\n${content}<|im_end|>\n<|im_start|>assistant\n`;
  let count = 0;
  for await (const _ of sequence.evaluate(model.tokenize(prompt, true), { temperature: 0, yieldEogToken: true }))
    if (++count === newTokens) break;
  if (count !== newTokens) throw new Error(`${count} tokens instead of ${newTokens}`);
}

await serve(async ({ clients, new_tokens: newTokens, repeat }) => {
  const context = await getContext(clients);
  const seconds = [];
  for (let run = 0; run < repeat; run++) {
    round++;
    const sequences = Array.from({ length: clients }, () => context.getSequence());
    const start = performance.now();
    await Promise.all(sequences.map((sequence, client) => ask(sequence, client, newTokens)));
    seconds.push((performance.now() - start) / 1000);
    for (const sequence of sequences) sequence.dispose();
  }
  const median = [...seconds].sort((a, b) => a - b)[seconds.length >> 1];
  return { seconds, count: clients * newTokens, values: { "requests/s": clients / median } };
});
