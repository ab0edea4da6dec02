import * as llamagym from "../../dist/index.js";
import { copyFromStorage, copyToStorage, listFiles } from "../../dist/browser.js";
import { trainBlackjack } from "./train-in-page.js";

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
  open: async (id: string) => {
    await llamagym.openEnv(id);
  },
});
