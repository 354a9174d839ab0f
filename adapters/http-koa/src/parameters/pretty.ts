import type { Exchange } from '../exchange.ts';

const truthy: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const falsy: ReadonlySet<string> = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

/**
 * Whether JSON is indented: see docs/reference/api-rules.md#query-parameters. A value that is no boolean is ignored.
 */
export function wantsPretty(exchange: Exchange, inClause: boolean | undefined): boolean {
  const value = exchange.attributes.query.first('pretty');
  if (value !== undefined) {
    if (truthy.has(value)) return true;
    if (falsy.has(value)) return false;
  }
  if (inClause !== undefined) return inClause;
  const agent = exchange.userAgent;
  switch (agent.charCodeAt(0)) {
    case 0x63: // c
      return agent.startsWith('curl');
    case 0x57: // W
      return agent.startsWith('Wget');
    case 0x4d: // M
      return agent.startsWith('Mozilla/5.0');
    default:
      return false;
  }
}
