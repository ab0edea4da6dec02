import { invalidEnv } from "../core/errors.js";
import { Env, type EnvFactory, type EnvOptions } from "./env.js";
import { createGameEnv } from "./games/as-env.js";
import { Game } from "./games/game.js";

type EnvClass = new (options: EnvOptions) => Env;
/** A class whose constructor names the options that it reads. */
type GameClass = new (options: never) => Game;

/** What a module exports, or an id is registered with: a class or a function. */
export type EnvExport = EnvFactory | EnvClass | GameClass;

const extendsClass = (value: unknown, base: abstract new () => object) =>
  typeof value === "function" && value.prototype instanceof base;

const isEnvClass = (value: unknown): value is EnvClass => extendsClass(value, Env);
const isGameClass = (value: unknown): value is GameClass => extendsClass(value, Game);

/** Whether a value is a class of environments or games. */
export const isEnvOrGameClass = (value: unknown): boolean => isEnvClass(value) || isGameClass(value);

/**
 * Returns what creates an environment by a class or a function, which `subject` names in messages;
 * a game is an environment against the option `opponent`. @throws ENV_INVALID for a class that
 * extends neither Env nor Game.
 */
export function toEnvFactory(value: EnvExport, subject: string): EnvFactory {
  if (isEnvClass(value)) return (options) => new value(options);
  if (isGameClass(value)) return createGameEnv((options) => new value(options as never));
  if (!/^class\b/.test(Function.prototype.toString.call(value))) return value;
  throw invalidEnv(
    `${subject} is a class that does not extend llamagym's Env. Write \`class ${value.name} extends Env\`, or Game for a game ` +
      "of several players. If it does, it imports another copy of llamagym than this program.",
  );
}
