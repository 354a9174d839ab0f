import { statusErrors } from '../errors/status-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { exportObject } from './export-object.ts';
import { isStorable, type ObjectTarget, objectTarget } from './object-target.ts';
import { getPoint } from './read-point.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, ExportParameters, Target } from './resource-service.ts';

/** GET of one object; the stored bytes go out untouched. */
export class GetOperation {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async run(
    context: RequestContext,
    target: Target,
    parameters: ExportParameters & { readonly resourceVersion: string },
  ): Promise<Answer> {
    this.#binding.requireVerb('get');
    const stored = await this.stored(context, objectTarget(this.#binding, target), parameters.resourceVersion);
    const { kind } = this.#binding;
    if (!parameters.export) return { stored, kind, code: 200 };
    const object = this.#binding.read(stored);
    exportObject(kind, object, parameters.exact, this.#binding.strategyContext(context));
    return { object, code: 200 };
  }

  /** @throws StatusError 404 when there is none. */
  async stored(context: RequestContext, target: ObjectTarget, resourceVersion = ''): Promise<StoredObject> {
    const point = getPoint(resourceVersion);
    const stored = isStorable(target)
      ? await this.#binding.storage.get(target.key, point, context.signal ? { signal: context.signal } : {})
      : undefined;
    if (stored === undefined) throw statusErrors.notFound(this.#binding.resource, target.name);
    return stored;
  }
}
