import { statusErrors } from '../errors/status-error.ts';
import type { ConnectLocation, ConnectOptions, ConnectParameter, ConnectSubresource } from '../kind/connect.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { parseInstant } from '../meta/time.ts';
import { apiVersionOf } from '../meta/types.ts';
import type { QueryParameters } from '../scope/request-attributes.ts';
import type { ReadOperations } from './read-operations.ts';
import { objectTarget, type ResourceBinding } from './resource-binding.ts';
import type { ConnectParameters, Target } from './resource-service.ts';

/**
 * Resolves the target of a call to a connect subresource, such as `log` or `proxy`: see
 * docs/reference/api-rules.md#calls-to-nodes.
 */
export class ConnectOperation {
  readonly #binding: ResourceBinding;
  readonly #reads: ReadOperations;

  constructor(binding: ResourceBinding, reads: ReadOperations) {
    this.#binding = binding;
    this.#reads = reads;
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
    const parentTarget = objectTarget(this.#binding, { ...target, name: parentName });
    const options = connectOptions(subresource, query);
    const errors = subresource.validate?.(options) ?? [];
    if (errors.length > 0) throw statusErrors.invalid(subresource.optionsKind, name, errors);
    if (!subresource.skipsAdmission)
      await services.admission.admit({
        operation: 'connect',
        kind,
        namespace: parentTarget.namespace,
        name,
        subresource: subresource.name,
        object: options,
        oldObject: undefined,
        dryRun: false,
        context,
      });
    const parent = this.#binding.read(await this.#reads.stored(context, parentTarget));
    return subresource.locate({
      ...{ context, parent, name, options, path, query: query.text },
      read: (resource, wanted, namespace) => services.readObject(context, resource, wanted, namespace),
    });
  }
}

function integer(name: string, text: string): number {
  if (!/^[-+]?\d{1,15}$/.test(text)) {
    throw statusErrors.badRequest(`the query parameter ${name} must be a whole number, not ${JSON.stringify(text)}`);
  }
  return Number(text);
}

function time(name: string, text: string): string {
  if (parseInstant(text) === undefined) {
    throw statusErrors.badRequest(`the query parameter ${name} must be an RFC 3339 time, not ${JSON.stringify(text)}`);
  }
  return text;
}

function ports(name: string, texts: readonly string[]): number[] {
  const parts = texts.flatMap((text) => text.split(','));
  const bad = parts.find((part) => !/^\d{1,5}$/.test(part) || Number(part) > 65_535);
  if (bad !== undefined) {
    throw statusErrors.badRequest(
      `the query parameter ${name} must be a list of port numbers, but one is ${JSON.stringify(bad)}`,
    );
  }
  return parts.map(Number);
}

/**
 * Value of a query parameter; undefined when the parameter is absent. An empty text, number or time counts as absent.
 */
function parameterValue({ name, type }: ConnectParameter, query: QueryParameters): unknown {
  if (!query.has(name)) return undefined;
  const first = query.first(name) ?? '';
  switch (type) {
    case 'boolean':
      return query.boolean(name);
    case 'strings':
      return query.all(name);
    case 'ports':
      return ports(name, query.all(name));
    case 'integer':
      return first === '' ? undefined : integer(name, first);
    case 'time':
      return first === '' ? undefined : time(name, first);
    case 'string':
      return first === '' ? undefined : first;
  }
}

/**
 * The options of a call from its query. Parameters that the subresource does not declare are ignored.
 *
 * @throws StatusError 400.
 */
function connectOptions({ optionsKind, parameters }: ConnectSubresource, query: QueryParameters): ConnectOptions {
  const options: Record<string, unknown> = { kind: optionsKind.kind, apiVersion: apiVersionOf(optionsKind) };
  for (const parameter of parameters) {
    const value = parameterValue(parameter, query);
    if (value !== undefined) options[parameter.name] = value;
  }
  return options;
}
