import {
  alwaysAllow,
  authorizerChain,
  BootstrapRoles,
  bootstrapPolicy,
  keepBinding,
  NodeAuthorizer,
  RbacAuthorizer,
  RbacIndex,
  RbacInformers,
  rbacEscalation,
  readPolicyFile,
  WebhookAuthorizer,
} from '@keelson/access';
import type { AdmissionPlugin, ApiClient, Authorizer, KindDefinition } from '@keelson/core';
import { type ResourceStorage, UsageError } from '@keelson/core/internal';
import type { Clock, Logger, Service } from '@keelson/core/runtime';
import { type AuthorizationOptions, authorizationModes } from '../config/authorization-options.ts';

/** The authorization of a plane. */
export interface Authorization {
  readonly authorizer: Authorizer;
  readonly admission: readonly AdmissionPlugin[];
  /** Called when the API exists; the returned services are started before requests are served. */
  services(): Service[];
}

export interface AuthorizationContext {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The API of the plane, which does not exist yet when the authorizer is created. */
  readonly api: () => ApiClient;
  /** The storage of a kind, which does not exist yet when the authorizer is created. */
  readonly storageOf: (kind: KindDefinition) => ResourceStorage;
  /** Whether the API serves roles and bindings. */
  readonly servesRoles: boolean;
}

/** @throws UsageError for repeated and unknown modes, and for settings that do not fit the modes */
function checkAuthorization({ modes = [], webhook, policyFile }: AuthorizationOptions): void {
  for (const [i, mode] of modes.entries()) {
    if (!authorizationModes.includes(mode))
      throw new UsageError(
        `--authorization-mode: unknown mode ${mode}; the modes are ${authorizationModes.join(', ')}`,
      );
    if (modes.indexOf(mode) !== i) throw new UsageError(`--authorization-mode contains ${mode} more than once`);
  }
  if (modes.includes('Webhook') && webhook === undefined)
    throw new UsageError(
      '--authorization-mode Webhook requires --authorization-webhook-config-file or --authorization-kubeconfig',
    );
  if (!modes.includes('Webhook') && webhook !== undefined)
    throw new UsageError(
      `--authorization-${webhook.cluster ? 'kubeconfig' : 'webhook-config-file'} requires --authorization-mode with Webhook`,
    );
  if (modes.includes('Policy') && policyFile === undefined)
    throw new UsageError('--authorization-mode Policy requires --authorization-policy-file');
  if (!modes.includes('Policy') && policyFile !== undefined)
    throw new UsageError('--authorization-policy-file requires --authorization-mode with Policy');
}

/** Creates the authorizers of a plane without starting them. @throws UsageError for invalid options and files */
export async function makeAuthorization(
  options: AuthorizationOptions,
  context: AuthorizationContext,
): Promise<Authorization> {
  checkAuthorization(options);
  const { modes = ['Node', 'RBAC'], webhook, policyFile } = options;
  const services: (() => Service)[] = [];
  const members: Authorizer[] = [];
  let rbac: RbacAuthorizer | undefined;
  for (const mode of modes) {
    if (mode === 'Node') members.push(new NodeAuthorizer(context.storageOf));
    else if (mode === 'AlwaysAllow') members.push(alwaysAllow);
    else if (mode === 'Policy') members.push(await readPolicyFile(policyFile ?? '', '--authorization-policy-file'));
    else if (mode === 'RBAC') {
      rbac = makeRbac(context, services);
      members.push(rbac);
    } else if (webhook !== undefined) {
      const authorizer = await WebhookAuthorizer.create(webhook, context);
      members.push(authorizer);
      const stop = async () => authorizer.close();
      services.push(() => ({ name: 'authorization-webhook', start: async () => {}, stop }));
    }
  }
  const authorizer = authorizerChain(members);
  return {
    authorizer,
    admission:
      rbac === undefined || !context.servesRoles ? [] : [rbacEscalation({ rbac, authorizer, client: context.api })],
    services: () => services.map((make) => make()),
  };
}

/** Without the kinds of roles and bindings, the default roles apply. */
function makeRbac({ servesRoles, api, ...context }: AuthorizationContext, services: (() => Service)[]): RbacAuthorizer {
  const index = new RbacIndex();
  if (!servesRoles) {
    const { clusterRoles, clusterRoleBindings } = bootstrapPolicy;
    for (const { metadata, rules = [] } of clusterRoles) index.putRole(metadata?.name ?? '', rules);
    for (const binding of clusterRoleBindings) index.addBinding(keepBinding(binding));
    return new RbacAuthorizer(index);
  }
  let informers: RbacInformers | undefined;
  services.push(() => new BootstrapRoles({ client: api(), ...context }));
  services.push(() => {
    informers = new RbacInformers({ client: api(), index, ...context });
    return informers;
  });
  return new RbacAuthorizer(index, () => informers?.loaded === true);
}
