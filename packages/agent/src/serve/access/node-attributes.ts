import type { Caller } from '../http/request.ts';

/** The attributes of a request to the agent for its authorization. */
export interface NodeAttributes {
  readonly verb: string;
  readonly subresource: 'stats' | 'metrics' | 'log' | 'spec' | 'proxy';
}

const verbs: ReadonlyMap<string, string> = new Map([
  ['POST', 'create'],
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

const subresources: ReadonlyMap<string, NodeAttributes['subresource']> = new Map([
  ['stats', 'stats'],
  ['metrics', 'metrics'],
  ['logs', 'log'],
  ['spec', 'spec'],
]);

/**
 * The attributes by which a request is authorized, from its method and the first segment of its path: see
 * docs/reference/agent-rules.md#access-to-the-agent.
 */
export function nodeAttributes(method: string, [first = '']: readonly string[]): NodeAttributes {
  return { verb: verbs.get(method) ?? method.toLowerCase(), subresource: subresources.get(first) ?? 'proxy' };
}

/** The user and the attributes, in the form of error messages. */
export function shownAttributes({ name }: Caller, { verb, subresource }: NodeAttributes): string {
  return `(user=${name}, verb=${verb}, resource=nodes, subresource=${subresource})`;
}
