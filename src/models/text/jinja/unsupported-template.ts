/** Thrown before rendering for what Jinja has and this implementation does not. */
export class UnsupportedTemplate extends Error {
  constructor(feature: string) {
    super(`${feature} is not supported`);
  }
}
