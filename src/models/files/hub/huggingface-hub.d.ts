// The package's declarations use imports without file extensions, which TypeScript does not resolve
// for ES modules; these declare what this folder uses.
declare module "@huggingface/hub" {
  interface Access {
    readonly hubUrl?: string;
    readonly fetch?: typeof fetch;
  }

  export function modelInfo(
    params: Access & {
      readonly name: string;
      readonly revision?: string;
      readonly additionalFields?: readonly "sha"[];
    },
  ): Promise<{ readonly sha?: unknown }>;

  export function listFiles(
    params: Access & {
      readonly repo: { readonly type: "model"; readonly name: string };
      readonly revision?: string;
      readonly recursive?: boolean;
    },
  ): AsyncGenerator<{
    readonly type: string;
    readonly path: string;
    readonly size: number;
    readonly oid?: string;
    readonly lfs?: { readonly oid: string; readonly size: number };
  }>;
}
