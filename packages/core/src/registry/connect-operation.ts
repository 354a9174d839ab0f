import { statusErrors } from '../errors/status-error.ts';
import type { ConnectLocation, ConnectSubresource } from '../kind/connect.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AdmissionRequest } from './admission.ts';
import { connectOptions } from './connect-options.ts';
import type { GetOperation } from './get-operation.ts';
import { objectTarget } from './object-target.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { ConnectParameters, Target } from './resource-service.ts';

/**
 * A call of a connect subresource, up to the point where it is passed on: see
 * docs/reference/api-rules.md#calls-to-nodes.
 */
export class ConnectOperation {
  readonly #binding: ResourceBinding;
  readonly #get: GetOperation;

  constructor(binding: ResourceBinding, get: GetOperation) {
    this.#binding = binding;
    this.#get = get;
  }

  async run(
    context: RequestContext,
    target: Target,
    subresource: ConnectSubresource,
    { query, path }: ConnectParameters,
  ): Promise<ConnectLocation> {
    const { kind, services } = this.#binding;
    const name = target.name ?? '';
    const parentName = subresource.parentName?.(name) ?? name;
    const place = objectTarget(this.#binding, { ...target, name: parentName });
    const options = connectOptions(subresource, query);
    const errors = subresource.validate?.(options) ?? [];
    if (errors.length > 0) throw statusErrors.invalid(subresource.optionsKind, name, errors);
    const request: AdmissionRequest = {
      operation: 'connect',
      kind,
      namespace: place.namespace,
      name,
      subresource: subresource.name,
      object: options,
      oldObject: undefined,
      dryRun: false,
      context,
    };
    const mutating = services.admission.mutate(request);
    if (mutating) await mutating;
    const validating = services.admission.validate(request);
    if (validating) await validating;
    const parent = this.#binding.read(await this.#get.stored(context, place));
    return subresource.locate({
      ...{ context, parent, name, options, path, query: query.text },
      read: (resource, wanted, namespace) => services.readObject(context, resource, wanted, namespace),
    });
  }
}
