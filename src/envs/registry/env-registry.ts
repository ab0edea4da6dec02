import { checkOptions, COUNT, type OptionNames } from "../../core/settings.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { findNearestName } from "../../core/suggest.js";
import { type EnvExport, toEnvFactory } from "../env-export.js";
import type { EnvSpec } from "../env.js";

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
  if (parts === undefined)
    throw invalidArgument(
      `Malformed environment ID: ${id}. Ids have the form [namespace/]name-v<version>, such as CartPole-v1; namespace and version are optional.`,
    );
  const { namespace, name, version } = parts;
  return { namespace, name, version: version === undefined ? undefined : Number(version) };
}

/** Formats the parts of an id; the inverse of `parseEnvId`. */
export function formatEnvId({ namespace, name, version }: EnvId): string {
  return `${namespace === undefined ? "" : `${namespace}/`}${name}${version === undefined ? "" : `-v${version}`}`;
}

/** Arguments of `register`: everything but `id` and `entryPoint` is optional. */
export type Registration = Partial<Omit<EnvSpec, "entryPoint">> &
  Pick<EnvSpec, "id"> & { readonly entryPoint: EnvExport };

const registrationNames: OptionNames<Registration> = {
  id: true,
  entryPoint: true,
  options: Object,
  maxEpisodeSteps: COUNT,
  rewardThreshold: Number,
  nondeterministic: Boolean,
  orderEnforce: Boolean,
  disableEnvChecker: Boolean,
  summary: String,
  knownReturns: Object,
  expert: Function,
  module: String,
};

/** Packages that register an id when they are imported. */
const REGISTERING_MODULES: Readonly<Record<string, string>> = { TextWorld: "llamagym/text-world" };

/** Registered environments by id. */
export class EnvRegistry {
  private readonly specs = new Map<string, EnvSpec>();

  constructor(registrations: readonly Registration[] = []) {
    for (const registration of registrations) this.register(registration);
  }

  /** Registers an environment, replacing one with the same id. */
  register(registration: Registration): EnvSpec {
    const { id } = registration;
    this.checkVersioning(parseEnvId(id));
    if (typeof registration.entryPoint !== "function")
      throw invalidArgument(
        `register("${id}"): entryPoint must be an Env class or a function that returns an environment.`,
      );
    checkOptions(`register("${id}")`, registration, registrationNames);
    const spec: EnvSpec = {
      ...registration,
      entryPoint: toEnvFactory(registration.entryPoint, `The entry point of ${id}`),
      options: registration.options ?? {},
      maxEpisodeSteps: registration.maxEpisodeSteps,
      rewardThreshold: registration.rewardThreshold,
      nondeterministic: registration.nondeterministic ?? false,
      orderEnforce: registration.orderEnforce ?? true,
      disableEnvChecker: registration.disableEnvChecker ?? false,
    };
    this.specs.set(id, spec);
    return spec;
  }

  /**
   * Returns the spec of an id, of its latest version when it has none. @throws ENV_UNKNOWN with the
   * nearest name.
   */
  spec(id: string): EnvSpec {
    const found = this.specs.get(id);
    if (found !== undefined) return found;
    const requested = parseEnvId(id);
    const versions = this.findVersions(requested);
    if (requested.version === undefined && versions.length > 0) return versions[versions.length - 1].spec;
    throw new LlamaGymError("ENV_UNKNOWN", this.describeUnknownId(requested, versions));
  }

  has(id: string): boolean {
    return this.specs.has(id);
  }

  /** Returns all specs in order of registration. */
  all(): readonly EnvSpec[] {
    return [...this.specs.values()];
  }

  private entries(): { id: EnvId; spec: EnvSpec }[] {
    return this.all().map((spec) => ({ id: parseEnvId(spec.id), spec }));
  }

  /** Returns the registered versions of a name in ascending order. */
  private findVersions({ namespace, name }: EnvId): { id: EnvId; spec: EnvSpec }[] {
    return this.entries()
      .filter(({ id }) => id.namespace === namespace && id.name === name)
      .sort((a, b) => (a.id.version ?? -1) - (b.id.version ?? -1));
  }

  private describeUnknownId(requested: EnvId, versions: { id: EnvId; spec: EnvSpec }[]): string {
    const { namespace, name, version } = requested;
    const entries = this.entries();
    const namespaces = new Set(entries.flatMap(({ id }) => (id.namespace === undefined ? [] : [id.namespace])));
    if (namespace !== undefined && !namespaces.has(namespace)) {
      const near = findNearestName(namespace, namespaces);
      const hint =
        near === undefined ? `Did you import the module that registers ${namespace}?` : `Did you mean: \`${near}\`?`;
      return `Namespace ${namespace} not found. ${hint}`;
    }
    if (versions.length === 0) {
      if (namespace === undefined && Object.hasOwn(REGISTERING_MODULES, name)) {
        const module = REGISTERING_MODULES[name];
        return `Environment \`${name}\` is registered by ${module}. Import it first: import "${module}".`;
      }
      const names = entries.filter(({ id }) => id.namespace === namespace).map(({ id }) => id.name);
      const near = findNearestName(name, names);
      const namespaceNote = namespace === undefined ? "" : ` in namespace ${namespace}`;
      const hint = near === undefined ? "`llamagym envs` lists the registered ones." : `Did you mean: \`${near}\`?`;
      return `Environment \`${name}\` doesn't exist${namespaceNote}. ${hint}`;
    }
    const full = formatEnvId({ ...requested, version: undefined });
    const latest = versions[versions.length - 1];
    if (version !== undefined && latest.id.version !== undefined && version < latest.id.version)
      return `Environment version v${version} for \`${full}\` is deprecated. Please use \`${latest.spec.id}\` instead.`;
    const message = `Environment version \`v${version}\` for environment \`${full}\` doesn't exist.`;
    if (latest.id.version === undefined) return `${message} It provides the default version \`${latest.spec.id}\`.`;
    return `${message} It provides versioned environments: [ ${versions.map(({ id }) => `\`v${id.version}\``).join(", ")} ].`;
  }

  /** @throws INVALID_ARGUMENT when a name would have ids with and without a version. */
  private checkVersioning(id: EnvId): void {
    const other = this.findVersions(id).find(
      (entry) => (entry.id.version === undefined) !== (id.version === undefined),
    );
    if (other === undefined) return;
    const [newKind, existingKind] =
      id.version === undefined ? ["unversioned", "versioned"] : ["versioned", "unversioned"];
    throw invalidArgument(
      `Can't register the ${newKind} environment \`${formatEnvId(id)}\` when the ${existingKind} environment \`${other.spec.id}\` of the same name already exists.`,
    );
  }
}
