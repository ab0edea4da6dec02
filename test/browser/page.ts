import * as llamagym from "../../dist/index.js";
import { copyFromStorage, copyToStorage, listFiles } from "../../dist/browser.js";
import { PROMPT, trainBlackjack } from "./train-in-page.js";

const RUN = "/runs/blackjack";

/** Functions that the test calls in the page. */
Object.assign(globalThis, {
  train: (threads: number) => trainBlackjack(llamagym as never, { threads }),
  trainAndStore: async () => {
    const result = await trainBlackjack(llamagym as never, { threads: 1, checkpointDir: RUN });
    await copyToStorage(RUN);
    return { result, files: await listFiles(RUN) };
  },
  readStored: async () => ((await copyFromStorage(RUN)) ? listFiles(RUN) : []),
  /** Completes a prompt with weights of fewer bits. */
  complete: async (quantize: 4 | 8) => {
    const model = await llamagym.AutoModelForCausalLM.fromPretrained("embedded", { quantize, threads: 1 });
    const { text, tokens } = await model.generate(PROMPT, { maxNewTokens: 8, temperature: 0, ignoreEos: true });
    await model.close();
    return { text, tokens: [...tokens] };
  },
  open: async (id: string) => {
    await llamagym.openEnv(id);
  },
});
