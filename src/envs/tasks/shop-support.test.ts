import { describe, expect, it } from "vitest";
import { randomAction } from "../random-action.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { type ShopCall, ShopSupportEnv, shopSupportEnvs } from "./shop-support.js";

const [spec] = shopSupportEnvs;
const DEFAULTS = { orders: 8, highest: 99, turns: 8 };

/**
 * Computes the return of random calls from the rules: a tool of four, a number of `highest`, over
 * the state of the customer's order, whether it is refunded, and whether another one is.
 */
function randomReturn({ orders, highest, turns }: typeof DEFAULTS): number {
  const own = 1 / highest;
  const other = (orders - 1) / highest;
  const value = (status: string, isRefunded: boolean, isOtherRefunded: boolean, left: number): number => {
    if (left === 0) return 0;
    const next = (to = status, refunded = isRefunded, otherRefunded = isOtherRefunded) =>
      value(to, refunded, otherRefunded, left - 1);
    const isSettled = status !== "shipped" && isRefunded === (status === "lost") && !isOtherRefunded;
    const close = isSettled ? own : 0;
    const wait = status === "shipped" ? (next("delivered") + next("lost")) / 2 : next();
    const refund = own * next(status, true) + other * next(status, isRefunded, true) + (1 - own - other) * next();
    return (close + wait + refund + next()) / 4;
  };
  return ["delivered", "lost", "shipped"].reduce((sum, status) => sum + value(status, false, false, turns) / 3, 0);
}

function play(env: ShopSupportEnv, seed: number, policy: (observation: string) => ShopCall): number {
  let { observation } = env.reset({ seed });
  for (;;) {
    const result = env.step(policy(observation));
    if (result.terminated) return result.reward;
    ({ observation } = result);
  }
}

const meanReturn = (env: ShopSupportEnv, count: number, policy: (observation: string) => ShopCall): number => {
  let sum = 0;
  for (let seed = 0; seed < count; seed++) sum += play(env, seed, policy);
  return sum / count;
};

describe("ShopSupportEnv", () => {
  it("has the computed return of random calls, and its expert settles every case", () => {
    expect(randomReturn(DEFAULTS)).toBeCloseTo(spec.knownReturns!.random, 4);
    const small = { orders: 2, highest: 3, turns: 6 };
    const env = new ShopSupportEnv(small);
    const random = new RandomStream(5);
    const draw = randomAction(env);
    const measured = meanReturn(env, 4000, (observation) => draw(observation, random, {}));
    expect(measured).toBeCloseTo(randomReturn(small), 1);
    const expert = spec.expert!(env) as (observation: string) => ShopCall;
    expect(meanReturn(new ShopSupportEnv(), 200, expert)).toBe(spec.knownReturns!.best);
  });

  it.each([
    [["close"], [1, 0, 0]],
    [
      ["refund", "close"],
      [0, 1, 0],
    ],
    [
      ["lookup", "wait", "refund", "refund", "close"],
      [0, 1, 0.5],
    ],
  ] as const)("rewards %j by what the database has then", (names, expected) => {
    const env = new ShopSupportEnv();
    const sums = { delivered: [0, 0], lost: [0, 0], shipped: [0, 0] };
    for (let seed = 0; seed < 200; seed++) {
      const { observation } = env.reset({ seed });
      const order = Number(/\d+/.exec(observation)![0]);
      const { info } = env.step({ name: "lookup", arguments: { order } });
      const status = info["result"] as keyof typeof sums;
      let reward = 0;
      for (const name of names) ({ reward } = env.step({ name, arguments: name === "wait" ? {} : { order } }));
      sums[status][0] += reward;
      sums[status][1] += 1;
    }
    const means = Object.values(sums).map(([sum, count]) => sum / count);
    means.forEach((mean, i) => expect(Math.abs(mean - expected[i])).toBeLessThan(expected[i] % 1 === 0 ? 1e-9 : 0.2));
  });

  it("gives nothing for another customer's order, nor after one of these is refunded", () => {
    const env = new ShopSupportEnv({ orders: 3, highest: 3 });
    const policies: ((order: number) => ShopCall[])[] = [
      (order) => [{ name: "close", arguments: { order: (order % 3) + 1 } }],
      (order) => [
        { name: "refund", arguments: { order: (order % 3) + 1 } },
        { name: "close", arguments: { order } },
      ],
    ];
    for (let seed = 0; seed < 30; seed++) {
      for (const calls of policies) {
        const order = Number(/\d+/.exec(env.reset({ seed }).observation)![0]);
        const rewards = calls(order).map((call) => env.step(call).reward);
        expect(rewards.at(-1)).toBe(0);
      }
    }
  });

  it("writes and reads calls as JSON", () => {
    const { text, actionSpace } = new ShopSupportEnv({ json: true });
    expect(text.choices).toBeUndefined();
    actionSpace.seed(4);
    for (let i = 0; i < 20; i++) {
      const call = actionSpace.sample();
      expect(text.parseAction(text.formatAction(call))).toEqual(call);
      expect(JSON.parse(text.formatAction(call))).toEqual(call);
    }
    expect(() => new ShopSupportEnv({ json: 1 as never })).toThrow("option json must be a boolean");
  });

  it("reads calls of its tools, and no others", () => {
    const { text, tools, actionSpace } = new ShopSupportEnv();
    const call: ShopCall = { name: "refund", arguments: { order: 12 } };
    for (const written of [text.formatAction(call), actionSpace.format(call), "First lookup 12, then Refund 12."])
      expect(text.parseAction(written)).toEqual(call);
    expect(text.parseAction("wait")).toEqual({ name: "wait", arguments: {} });
    for (const wrong of ['{"name": "refund", "arguments": {}}', "close 100", "close 0", "refund"])
      expect(text.parseAction(wrong)).toBeUndefined();
    for (const choice of text.choices as readonly string[])
      expect(text.formatAction(text.parseAction(choice)!)).toBe(choice);
    expect(tools.map(({ name }) => name)).toEqual(["lookup", "refund", "wait", "close"]);
    expect(actionSpace.contains({ name: "close", arguments: { order: 100 } })).toBe(false);
  });
});
