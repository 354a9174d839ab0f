import type { Caller } from '../request.ts';

/** What a request to the agent is, in the words of authorization. */
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
 * What a request wants of the node (agent.md B.5), by its method and the first segment of its path. Whatever has no word of its own, running
 * commands among it, is `proxy`.
 */
export function nodeAttributes(method: string, [first = '']: readonly string[]): NodeAttributes {
  return { verb: verbs.get(method) ?? method.toLowerCase(), subresource: subresources.get(first) ?? 'proxy' };
}

/** Who wanted what, as answers say it. */
export function shownAttributes({ name }: Caller, { verb, subresource }: NodeAttributes): string {
  return `(user=${name}, verb=${verb}, resource=nodes, subresource=${subresource})`;
}
