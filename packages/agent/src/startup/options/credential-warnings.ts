import type { AgentConfig } from '../../base/config/agent-config.ts';
import type { AgentOptions } from './option-table.ts';

/** The feature gate of the renewal of client certificates. */
export const rotationGate = 'RotateAgentClientCertificate';

/** Warnings about credential options that have no effect, with the reason. */
export function credentialWarnings({ api, gates }: Pick<AgentConfig, 'api' | 'gates'>, values: AgentOptions): string[] {
  if (!values['rotate-certificates'] || api?.rotateCertificates) return [];
  if (gates[rotationGate] !== true)
    return [`--rotate-certificates has no effect: the feature gate ${rotationGate} is off`];
  return ['--rotate-certificates has no effect: the agent runs without an API server'];
}
