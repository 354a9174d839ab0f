import { UsageError } from '@keelson/core/internal';
import type { AgentConfig } from '../../base/config/agent-config.ts';
import { cgroupChecks } from './check-cgroups.ts';
import { evictionChecks } from './check-eviction.ts';
import { networkChecks } from './check-network.ts';
import { podChecks } from './check-pods.ts';
import { runtimeChecks } from './check-runtime.ts';
import { servingChecks } from './check-serving.ts';
import type { Check, CheckContext } from './option-checks.ts';
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

const checks: readonly Check[] = [
  ...servingChecks,
  ...runtimeChecks,
  ...podChecks,
  ...cgroupChecks,
  ...evictionChecks,
  ...networkChecks,
];

/**
 * Rejects values that are well-formed but out of range, and values that contradict each other.
 *
 * @throws UsageError with the first problem
 */
export function checkOptions(context: CheckContext): void {
  for (const check of checks) for (const problem of check(context)) throw new UsageError(problem);
}
