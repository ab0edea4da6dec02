import { readCounts } from "../env-options.js";
import type { Info } from "../info.js";
import type { Policy } from "../policy.js";
import type { Registration } from "../registry/env-registry.js";
import { SchemaSpace } from "../spaces/schema-space.js";
import { Text } from "../spaces/text.js";
import { type CallableTool, toolCallSchema } from "../spaces/tool-call-schema.js";
import type { TextInterface } from "../text-interface.js";
import { COMMAND_CHARSET, TaskEnv, type TaskStep } from "./task-env.js";

/** Where an order is. */
export type OrderStatus = "delivered" | "lost" | "shipped";

/** An order in the shop's database. */
export type Order = {
  readonly number: number;
  readonly status: OrderStatus;
  /** Status of a shipped order on the next day. */
  readonly nextStatus: "delivered" | "lost";
  readonly isRefunded: boolean;
};

/** A call of one of the shop's tools; `wait` has no arguments. */
export interface ShopCall {
  readonly name: "lookup" | "refund" | "wait" | "close";
  readonly arguments: { readonly order?: number };
}

/** A tool of the shop, as agents' libraries describe tools. */
export interface ShopTool extends CallableTool {
  readonly name: ShopCall["name"];
  readonly description: string;
}

/** Options of `ShopSupportEnv`. */
export interface ShopSupportOptions {
  /** Orders in the database. */
  readonly orders?: number;
  /** Largest order number. */
  readonly highest?: number;
  /** Calls per episode. */
  readonly turns?: number;
  /** Whether completions are JSON instead of commands. Default false. */
  readonly json?: boolean;
}

type ShopState = {
  readonly orders: readonly Order[];
  /** Number of the customer's order. */
  readonly order: number;
  /** A line per call: the call and its result. */
  readonly log: readonly string[];
  /** Result of the last call. */
  readonly result: string;
};

const MAX_OBSERVATION = 4096;
const STATUSES = ["delivered", "lost", "shipped"] as const;
const NEXT_STATUSES = ["delivered", "lost"] as const;
const DESCRIPTIONS: Readonly<Record<ShopCall["name"], string>> = {
  lookup: "Returns the status of an order.",
  refund: "Refunds an order.",
  wait: "Waits a day, until shipped orders are delivered or lost.",
  close: "Closes the case of an order.",
};

/**
 * Support of a shop: a customer asks for an order that has not arrived. The calls `lookup` and
 * `refund` take an order's number, `wait` lets a day pass, `close` ends the case. Reward for
 * closing the customer's order: 1 if the database is right then, that is, exactly the lost order of
 * this customer is refunded and nothing is still on its way; otherwise 0.
 */
export class ShopSupportEnv extends TaskEnv<string, ShopCall, ShopState> {
  override readonly observationSpace = new Text(MAX_OBSERVATION, { charset: `${COMMAND_CHARSET}\n:` });
  override readonly actionSpace: SchemaSpace<ShopCall>;
  override readonly text: TextInterface<string, ShopCall>;
  /** The tools, for agents that call a model by its API. */
  readonly tools: readonly ShopTool[];
  private readonly numOrders: number;
  private readonly highest: number;
  private readonly turns: number;

  constructor(options: ShopSupportOptions = {}) {
    super();
    const ranges = { orders: [8, 1, 1000], highest: [99, 1, 9999], turns: [8, 1, 100] } as const;
    const { orders, highest, turns, json: isJson } = readCounts("ShopSupport", options, ranges, { json: false });
    this.numOrders = Math.min(orders, highest);
    this.highest = highest;
    this.turns = turns;
    this.tools = (["lookup", "refund", "wait", "close"] as const).map((name) => ({
      name,
      description: DESCRIPTIONS[name],
      parameters: createParameters(name === "wait" ? undefined : highest),
    }));
    const layout = { isList: false, argumentsKey: "arguments" } as const;
    const space = new SchemaSpace<ShopCall>(toolCallSchema(this.tools, layout, false));
    this.actionSpace = space;
    const { examples, ...actions } = isJson
      ? {
          examples: '{"name": "lookup", "arguments": {"order": 7}} or {"name": "wait", "arguments": {}}',
          formatAction: (call: ShopCall) => space.format(call),
          jsonSchema: space.jsonSchema,
        }
      : {
          examples: "lookup 7, refund 7, wait or close 7",
          formatAction: formatCall,
          choices: this.tools.flatMap(({ name }) =>
            name === "wait" ? [name] : Array.from({ length: highest }, (_, i) => `${name} ${i + 1}`),
          ),
        };
    this.text = {
      systemPrompt: `A customer of a shop asks for an order that has not arrived. lookup returns its status. If it is shipped, wait. If it is lost, refund it. At the end, close it. Reply with one call${isJson ? " as JSON" : ""}, such as ${examples}.`,
      formatObservation: (observation) => observation,
      parseAction: (completion) => space.parse(completion) ?? parseCall(completion, highest),
      ...actions,
    };
  }

  protected override start(): ShopState {
    const { random, numOrders, highest } = this;
    const orders = random.sampleIndices(highest, numOrders).map((index) => ({
      number: index + 1,
      status: random.choice(STATUSES),
      nextStatus: random.choice(NEXT_STATUSES),
      isRefunded: false,
    }));
    return { orders, order: random.choice(orders).number, log: [], result: "" };
  }

  protected override observe({ order, log }: ShopState): string {
    return [`Order ${order} has not arrived.`, ...log].join("\n");
  }

  /** `result`: the result of the last call. */
  protected override describe({ result }: ShopState): Info {
    return { result };
  }

  protected override advance(state: ShopState, { name, arguments: { order } }: ShopCall): TaskStep<ShopState> {
    if (name === "close") {
      const isSuccess = order === state.order && isSettled(state);
      return { state, reward: isSuccess ? 1 : 0, terminated: true, isSuccess };
    }
    const { orders, result } = apply(state.orders, name, order);
    const log = [...state.log, `${formatCall({ name, arguments: { order } })}: ${result}`];
    return {
      state: { ...state, orders, log, result },
      reward: 0,
      terminated: log.length >= this.turns,
      isSuccess: false,
    };
  }
}

/** Reads the last call that a completion names; undefined for none. */
function parseCall(completion: string, highest: number): ShopCall | undefined {
  const calls = [...completion.matchAll(/\b(?:(lookup|refund|close) +(\d+)|(wait))\b/gi)];
  const [, name, number, wait] = calls.at(-1) ?? [];
  if (wait !== undefined) return { name: "wait", arguments: {} };
  const order = Number(number);
  if (name === undefined || order < 1 || order > highest) return undefined;
  return { name: name.toLowerCase() as ShopCall["name"], arguments: { order } };
}

const formatCall = ({ name, arguments: { order } }: ShopCall): string =>
  order === undefined ? name : `${name} ${order}`;

function createParameters(highest: number | undefined) {
  const order = { type: "integer", minimum: 1, maximum: highest };
  return {
    type: "object",
    properties: highest === undefined ? {} : { order },
    required: highest === undefined ? [] : ["order"],
    additionalProperties: false,
  };
}

/** Returns the orders after a call that does not end the episode, and what the call returns. */
function apply(
  orders: readonly Order[],
  name: Exclude<ShopCall["name"], "close">,
  number: number | undefined,
): { readonly orders: readonly Order[]; readonly result: string } {
  if (name === "wait") {
    const arrive = (order: Order): Order =>
      order.status === "shipped" ? { ...order, status: order.nextStatus } : order;
    return { orders: orders.map(arrive), result: "a day passed" };
  }
  const found = orders.find((order) => order.number === number);
  if (found === undefined) return { orders, result: "no such order" };
  if (name === "lookup") return { orders, result: found.status };
  return { orders: orders.map((order) => (order === found ? { ...order, isRefunded: true } : order)), result: "done" };
}

/**
 * Whether the customer's order has arrived or is refunded, and no other order is refunded.
 */
function isSettled({ orders, order }: ShopState): boolean {
  return orders.every(({ number, status, isRefunded }) =>
    number === order ? status !== "shipped" && isRefunded === (status === "lost") : !isRefunded,
  );
}

/** Looks the order up, waits while it is shipped, refunds it if it is lost, and closes it. */
const createShopExpert = (): Policy => (observation) => {
  const text = String(observation);
  const order = Number(/\d+/.exec(text)?.[0]);
  const last = text.slice(text.lastIndexOf("\n") + 1).replace(/^.*: /, "");
  const names: Readonly<Record<string, ShopCall["name"]>> = {
    shipped: "wait",
    lost: "refund",
    delivered: "close",
    done: "close",
  };
  const name = names[last] ?? "lookup";
  return { name, arguments: name === "wait" ? {} : { order } } satisfies ShopCall;
};

export const shopSupportEnvs: readonly Registration[] = [
  {
    id: "ShopSupport-v0",
    entryPoint: (options) => new ShopSupportEnv(options),
    summary: "settle an order by tool calls",
    knownReturns: { random: 0.0035, best: 1, basis: "exact" },
    expert: createShopExpert,
  },
];
