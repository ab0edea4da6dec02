import { invalidArgument } from "../../core/errors.js";

/** Parts of an environment id. */
export interface EnvId {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly version: number | undefined;
}

const ID_PATTERN = /^(?:(?<namespace>[\w:-]+)\/)?(?<name>[\w:.-]+?)(?:-v(?<version>\d+))?$/;

/** Parses `[namespace/]name[-v<version>]`. */
export function parseEnvId(id: string): EnvId {
  const parts = typeof id === "string" ? ID_PATTERN.exec(id)?.groups : undefined;
  if (parts === undefined) {
    throw invalidArgument(
      `Malformed environment ID: ${id}. Ids have the form [namespace/]name-v<version>, such as CartPole-v1; namespace and version are optional.`,
    );
  }
  const { namespace, name, version } = parts;
  return { namespace, name, version: version === undefined ? undefined : Number(version) };
}

/** Formats the parts of an id; the inverse of `parseEnvId`. */
export function formatEnvId({ namespace, name, version }: EnvId): string {
  return `${namespace === undefined ? "" : `${namespace}/`}${name}${version === undefined ? "" : `-v${version}`}`;
}
