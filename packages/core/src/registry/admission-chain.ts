import type { AdmissionPlugin, AdmissionRequest } from './admission.ts';

type Step = (request: AdmissionRequest) => void | Promise<void>;

async function runFrom(
  steps: readonly [AdmissionPlugin, Step][],
  start: number,
  request: AdmissionRequest,
): Promise<void> {
  for (const [plugin, step] of steps.slice(start)) {
    if (plugin.handles?.(request) ?? true) await step.call(plugin, request);
  }
}

/**
 * Stays synchronous until a step answers with a promise, so that a chain without asynchronous plugins costs no turn.
 */
function run(steps: readonly [AdmissionPlugin, Step][], request: AdmissionRequest): Promise<void> | undefined {
  for (const [i, [plugin, step]] of steps.entries()) {
    if (!(plugin.handles?.(request) ?? true)) continue;
    const pending = step.call(plugin, request);
    if (pending) return pending.then(() => runFrom(steps, i + 1, request));
  }
  return undefined;
}

/**
 * Runs the plugins: every `mutate` before any `validate`, each in registration order. The first refusal ends the
 * operation.
 */
export class AdmissionChain {
  readonly #mutating: readonly [AdmissionPlugin, Step][];
  readonly #validating: readonly [AdmissionPlugin, Step][];

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#mutating = plugins.flatMap((plugin): [AdmissionPlugin, Step][] =>
      plugin.mutate ? [[plugin, plugin.mutate]] : [],
    );
    this.#validating = plugins.flatMap((plugin): [AdmissionPlugin, Step][] =>
      plugin.validate ? [[plugin, plugin.validate]] : [],
    );
  }

  /** Undefined when everything ran to its end at once. */
  mutate(request: AdmissionRequest): Promise<void> | undefined {
    return this.#mutating.length === 0 ? undefined : run(this.#mutating, request);
  }

  /** Undefined when everything ran to its end at once. */
  validate(request: AdmissionRequest): Promise<void> | undefined {
    return this.#validating.length === 0 ? undefined : run(this.#validating, request);
  }
}
