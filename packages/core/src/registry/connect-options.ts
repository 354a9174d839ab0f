import { statusErrors } from '../errors/status-error.ts';
import type { ConnectOptions, ConnectParameter, ConnectSubresource } from '../kind/connect.ts';
import { parseInstant } from '../meta/time.ts';
import { apiVersionOf } from '../meta/types.ts';
import type { QueryParameters } from '../scope/query-parameters.ts';

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
  const words = texts.flatMap((text) => text.split(','));
  const bad = words.find((word) => !/^\d{1,5}$/.test(word) || Number(word) > 65_535);
  if (bad !== undefined) {
    throw statusErrors.badRequest(
      `the query parameter ${name} must be a list of port numbers, but one is ${JSON.stringify(bad)}`,
    );
  }
  return words.map(Number);
}

/** Undefined when the parameter was not sent. Texts, numbers and times that are empty count as not sent. */
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
 * The options of a call in its query. Parameters that the subresource does not know are left out.
 * @throws StatusError 400
 */
export function connectOptions(
  { optionsKind, parameters }: ConnectSubresource,
  query: QueryParameters,
): ConnectOptions {
  const options: Record<string, unknown> = { kind: optionsKind.kind, apiVersion: apiVersionOf(optionsKind) };
  for (const parameter of parameters) {
    const value = parameterValue(parameter, query);
    if (value !== undefined) options[parameter.name] = value;
  }
  return options;
}
