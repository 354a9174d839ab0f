import type { ControlPlaneOptions } from './plane-options.ts';

/** The options of {@link ControlPlaneOptions} whose values the command takes from flags. */
const names: Readonly<Record<string, `${keyof ControlPlaneOptions}${'' | `.${string}`}`>> = {
  '--accept-new-store': 'acceptNewStore',
  '--anonymous-auth': 'authentication.anonymous',
  '--audit-log-path': 'audit.log',
  '--audit-policy-file': 'audit.policyFile',
  '--audit-webhook-config-file': 'audit.webhookConfigFile',
  '--authentication-config': 'authentication.configFile',
  '--authentication-kubeconfig': 'authentication.webhook',
  '--authentication-token-webhook-config-file': 'authentication.webhook',
  '--authorization-kubeconfig': 'authorization.webhook',
  '--authorization-mode': 'authorization.modes',
  '--authorization-policy-file': 'authorization.policyFile',
  '--authorization-webhook-config-file': 'authorization.webhook',
  '--client-ca-file': 'authentication.clientAuthorityFile',
  '--client-crl-file': 'authentication.revocationFile',
  '--controllers': 'controllers',
  '--encryption-provider-config': 'encryptionConfigFile',
  '--requestheader-client-ca-file': 'authentication.requestHeaders',
  '--service-cluster-ip-range': 'services.serviceClusterIpRange',
  '--service-node-port-range': 'services.serviceNodePortRange',
  '--storage': 'storage',
  '--token-auth-file': 'authentication.tokenFile',
};

/** The error with the options of the API in its message instead of the flags of the command. */
export function withOptionNames(error: unknown): unknown {
  if (error instanceof Error) error.message = error.message.replace(/--[a-z][a-z-]*/g, (flag) => names[flag] ?? flag);
  return error;
}
