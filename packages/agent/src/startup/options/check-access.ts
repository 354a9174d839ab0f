import { UsageError } from '../../base/usage-error.ts';
import type { AgentOptions, OptionName } from './option-table.ts';

/**
 * Who asks for reviews needs somebody who answers them.
 *
 * @throws UsageError
 */
export function checkAccess(values: AgentOptions, hasApi: boolean): void {
  if (hasApi || values.runonce || !values['enable-server']) return;
  const why = 'which says where the API server is that answers';
  if (values['authentication-token-webhook'])
    throw new UsageError(`--authentication-token-webhook needs --clusterconfig, ${why}`);
  if (values['authorization-mode'] === 'Webhook')
    throw new UsageError(`--authorization-mode=Webhook needs --clusterconfig, ${why}`);
}

/** Sentences about times of answers that nobody asks for. */
export function accessWarnings(values: AgentOptions, given: ReadonlySet<string>): string[] {
  const idle: string[] = [];
  const means = (name: OptionName, without: string) => {
    if (given.has(name)) idle.push(`--${name} means nothing without ${without}`);
  };
  if (!values['authentication-token-webhook'])
    means('authentication-token-webhook-cache-ttl', '--authentication-token-webhook');
  if (values['authorization-mode'] !== 'Webhook') {
    means('authorization-webhook-cache-authorized-ttl', '--authorization-mode=Webhook');
    means('authorization-webhook-cache-unauthorized-ttl', '--authorization-mode=Webhook');
  }
  return idle;
}
