import { equal } from "node:assert/strict";
import { it } from "node:test";
import { checkEnv, expectToLearn } from "llamagym/testing";
import { CupsEnv } from "./own-env.js";

await it("follows the rules of environments", async () => {
  await checkEnv(new CupsEnv());
});

await it("pays for the right cup", async () => {
  const env = new CupsEnv();
  const { observation } = await env.reset({ seed: 1 });
  const { reward } = await env.step((observation + 1) % 3);
  equal(reward, 1);
});

await it("can be learned", async () => {
  await expectToLearn(() => new CupsEnv(), { reward: 0.9, minutes: 1 });
});
