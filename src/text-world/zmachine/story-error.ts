/** A violation of the Z-machine standard or of resource limits. */
export class StoryError extends Error {
  override readonly name = "StoryError";
}
