import * as llamagym from "../../dist/index.js";
import { copyFromStorage, copyToStorage, listFiles, writeFile } from "../../dist/browser.js";
import { type PageTraining, PROMPT, trainInPage } from "./train-in-page.js";

const RUN = "/runs/blackjack";

/** Functions that the test calls in the page. */
Object.assign(globalThis, {
  train: (training: PageTraining) => trainInPage(llamagym as never, training),
  trainAndStore: async () => {
    const result = await trainInPage(llamagym as never, { threads: 1, checkpointDir: RUN });
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
  /** Writes files, in base64, by their paths. */
  write: async (files: Readonly<Record<string, string>>) => {
    for (const [path, text] of Object.entries(files))
      await writeFile(
        path,
        Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)),
      );
  },
  open: async (id: string) => {
    await llamagym.openEnv(id);
  },
});
