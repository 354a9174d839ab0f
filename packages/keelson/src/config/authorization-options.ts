import type { WebhookAuthorizerOptions } from '@keelson/access';
import { duration, listOf, oneOf, UsageError, type ValueType } from '@keelson/core/internal';
import { type Declared, path } from './option-types.ts';

/** The authorizers that can be combined. */
export const authorizationModes = ['Node', 'RBAC', 'Webhook', 'Policy', 'AlwaysAllow'] as const;
/** One of the authorizers that can be combined. */
export type AuthorizationMode = (typeof authorizationModes)[number];

/** How requests are authorized. */
export interface AuthorizationOptions {
  /**
   * The authorizers in the order in which they are asked; the first that allows or denies decides. Members of
   * `system:masters` are always allowed. Default `Node`, `RBAC`.
   *
   * - `Node`: what the agents of nodes require.
   * - `RBAC`: roles and bindings. Creates the default roles, and rejects roles and bindings by which users would grant
   *   permissions that they do not have.
   * - `Webhook`: SubjectAccessReviews that an HTTP service answers.
   * - `Policy`: the lines of a file.
   * - `AlwaysAllow`: every request.
   */
  readonly modes?: readonly AuthorizationMode[];
  /** The HTTP service of the mode `Webhook`. Required by this mode, and only valid with it. */
  readonly webhook?: WebhookAuthorizerOptions;
  /** File of the mode `Policy`, whose format is that of the ABAC mode of Kubernetes. Only valid with this mode. */
  readonly policyFile?: string;
}

/** Options of the command line about authorization. */
export interface AuthorizationConfig {
  readonly authorizationMode: readonly AuthorizationMode[];
  readonly authorizationPolicyFile?: string;
  readonly authorizationWebhookConfigFile?: string;
  readonly authorizationKubeconfig?: string;
  readonly authorizationWebhookCacheAuthorizedTtl: number;
  readonly authorizationWebhookCacheUnauthorizedTtl: number;
  readonly authorizationWebhookTimeout: number;
  readonly authorizationWebhookFailurePolicy: 'NoOpinion' | 'Deny';
}

const mode = oneOf('MODE', authorizationModes);
const modes: ValueType<readonly AuthorizationMode[]> = listOf('MODE,...', (text, source) => mode.parse(text, source));

/** A duration in milliseconds that is not negative. */
const interval: ValueType<number> = {
  ...duration,
  parse: (text, source) => notNegative(duration.parse(text, source), source),
  fromFile: (raw, source, directory) => notNegative(duration.fromFile(raw, source, directory), source),
};

function notNegative(ms: number, source: string): number {
  if (ms < 0) throw new UsageError(`${source} must not be negative`);
  return Math.ceil(ms);
}

/** Rows of the option table about authorization. */
export const authorizationRows: {
  readonly [K in keyof AuthorizationConfig]-?: Declared<AuthorizationConfig[K] | undefined>;
} = {
  authorizationMode: {
    flag: '--authorization-mode',
    variable: 'KEELSON_AUTHORIZATION_MODE',
    type: modes,
    default: ['Node', 'RBAC'],
    shownDefault: 'Node,RBAC',
    help: `authorizers in the order in which they are asked, each at most once: ${authorizationModes.join(', ')}`,
  },
  authorizationPolicyFile: {
    flag: '--authorization-policy-file',
    variable: 'KEELSON_AUTHORIZATION_POLICY_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'file of the mode Policy, a JSON object per line in the ABAC format of Kubernetes; read when the server starts',
  },
  authorizationWebhookConfigFile: {
    flag: '--authorization-webhook-config-file',
    variable: 'KEELSON_AUTHORIZATION_WEBHOOK_CONFIG_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'kubeconfig of the mode Webhook: URL of the service and credentials',
  },
  authorizationKubeconfig: {
    flag: '--authorization-kubeconfig',
    variable: 'KEELSON_AUTHORIZATION_KUBECONFIG',
    type: path('FILE'),
    default: undefined,
    help: 'kubeconfig of a cluster that this server extends: the mode Webhook asks its API by SubjectAccessReview',
  },
  authorizationWebhookCacheAuthorizedTtl: {
    flag: '--authorization-webhook-cache-authorized-ttl',
    variable: 'KEELSON_AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL',
    type: interval,
    default: 300_000,
    help: 'time for which an answer of the webhook that allows is used again',
  },
  authorizationWebhookCacheUnauthorizedTtl: {
    flag: '--authorization-webhook-cache-unauthorized-ttl',
    variable: 'KEELSON_AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL',
    type: interval,
    default: 30_000,
    help: 'time for which an answer of the webhook that does not allow is used again',
  },
  authorizationWebhookTimeout: {
    flag: '--authorization-webhook-timeout',
    variable: 'KEELSON_AUTHORIZATION_WEBHOOK_TIMEOUT',
    type: interval,
    default: 3_000,
    help: 'timeout of one review by the webhook',
  },
  authorizationWebhookFailurePolicy: {
    flag: '--authorization-webhook-failure-policy',
    variable: 'KEELSON_AUTHORIZATION_WEBHOOK_FAILURE_POLICY',
    type: oneOf('POLICY', ['NoOpinion', 'Deny']),
    default: 'NoOpinion',
    help: 'NoOpinion | Deny: what follows from a webhook that does not answer; NoOpinion asks the next authorizer',
  },
};

/** The authorization that the options of the command line describe. */
export function authorizationOptions(config: AuthorizationConfig): AuthorizationOptions {
  const { authorizationPolicyFile: policyFile, authorizationWebhookConfigFile, authorizationKubeconfig } = config;
  if (authorizationWebhookConfigFile !== undefined && authorizationKubeconfig !== undefined)
    throw new UsageError('--authorization-webhook-config-file and --authorization-kubeconfig exclude each other');
  const kubeconfig = authorizationKubeconfig ?? authorizationWebhookConfigFile;
  return {
    modes: config.authorizationMode,
    ...(policyFile === undefined ? {} : { policyFile }),
    ...(kubeconfig === undefined
      ? {}
      : {
          webhook: {
            kubeconfig,
            cluster: authorizationKubeconfig !== undefined,
            authorizedTtlMs: config.authorizationWebhookCacheAuthorizedTtl,
            unauthorizedTtlMs: config.authorizationWebhookCacheUnauthorizedTtl,
            timeoutMs: config.authorizationWebhookTimeout,
            failurePolicy: config.authorizationWebhookFailurePolicy,
          },
        }),
  };
}
