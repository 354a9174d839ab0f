import type { GivenValues } from '@keelson/core/internal';
import { UsageError } from '@keelson/core/internal';
import type { AgentOptions, OptionName } from './option-table.ts';

/**
 * Rejects options that require reviews by the API server when the agent has no API server.
 *
 * @throws UsageError
 */
export function checkAccess(values: AgentOptions, hasApi: boolean): void {
  if (hasApi || values.runonce || !values['enable-server']) return;
  const why = 'which specifies the API server that reviews requests';
  if (values['authentication-token-webhook'])
    throw new UsageError(`--authentication-token-webhook needs --clusterconfig, ${why}`);
  if (values['authorization-mode'] === 'Webhook')
    throw new UsageError(`--authorization-mode=Webhook needs --clusterconfig, ${why}`);
}

/** Warnings about cache periods of reviews that are not requested. */
export function accessWarnings(values: AgentOptions, given: GivenValues): string[] {
  const warnings: string[] = [];
  const requires = (name: OptionName, without: string) => {
    if (given.has(name)) warnings.push(`--${name} has no effect without ${without}`);
  };
  if (!values['authentication-token-webhook'])
    requires('authentication-token-webhook-cache-ttl', '--authentication-token-webhook');
  if (values['authorization-mode'] !== 'Webhook') {
    requires('authorization-webhook-cache-authorized-ttl', '--authorization-mode=Webhook');
    requires('authorization-webhook-cache-unauthorized-ttl', '--authorization-mode=Webhook');
  }
  return warnings;
}
