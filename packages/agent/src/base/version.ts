import { agentName } from './agent-name.ts';

/** Version of this package. */
export const agentVersion = '0.1.0';

/** The output of `--version`: one line, or all version information as JSON. */
export function versionText(request: 'line' | 'raw'): string {
  if (request === 'line') return `${agentName} v${agentVersion}\n`;
  const { node, v8 } = process.versions;
  const platform = `${process.platform}/${process.arch}`;
  return `${JSON.stringify({ name: agentName, version: agentVersion, platform, node, v8 })}\n`;
}
