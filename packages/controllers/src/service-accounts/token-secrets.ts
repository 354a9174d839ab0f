import { type ControllerDefinition, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { ConfigMap, Secret, ServiceAccount } from '@keelson/kinds';
import { rootAuthorityMap } from '../namespace/namespace-defaults.ts';

/** The service account of a token without expiration. */
export interface TokenAccount {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface TokenSecretsOptions {
  /** Signs a token that is valid as long as the Secret named `secretName` contains it. */
  readonly sign: (account: TokenAccount, secretName: string) => Promise<string>;
  /** The present authorities of the server's certificate, PEM. Absent: `ca.crt` is not written. */
  readonly authority?: (() => string) | undefined;
}

const type = 'kubernetes.io/service-account-token';
const nameAnnotation = 'kubernetes.io/service-account.name';
const uidAnnotation = 'kubernetes.io/service-account.uid';
const byAccount = ({ metadata }: Secret) => {
  const name = metadata?.annotations?.[nameAnnotation];
  return name ? [`${metadata?.namespace}/${name}`] : [];
};
const byNamespace = ({ metadata }: Secret) => [metadata?.namespace ?? ''];
const keyOf = ({ metadata }: Secret) => `${metadata?.namespace}/${metadata?.name}`;

/**
 * Fills Secrets of the type `kubernetes.io/service-account-token` with a token of the account that their annotation
 * names, and deletes them with the account.
 */
export function tokenSecrets(options: TokenSecretsOptions): ControllerDefinition<Secret> {
  return {
    name: 'serviceaccount-token-controller',
    kind: Secret,
    select: { fieldSelector: `type=${type}` },
    related: [
      relatedKind(ServiceAccount, ({ metadata }, _before, read) =>
        read(Secret).by(byAccount, `${metadata?.namespace}/${metadata?.name}`).map(keyOf),
      ),
      // The config map with the certificate authority is updated in every namespace when the authority changes.
      relatedKind(
        ConfigMap,
        ({ metadata }, _before, read) =>
          read(Secret)
            .by(byNamespace, metadata?.namespace ?? '')
            .map(keyOf),
        { fieldSelector: `metadata.name=${rootAuthorityMap}` },
      ),
    ],
    reconcile: async (secret, run) => {
      const { namespace = '', name = '', annotations = {}, deletionTimestamp } = secret.metadata ?? {};
      const accountName = annotations[nameAnnotation];
      if (secret.type !== type || !accountName || deletionTimestamp) return undefined;
      const uid = annotations[uidAnnotation];
      const account = await accountOf(run, namespace, accountName, uid);
      if (account === undefined) await remove(secret, run);
      else await fill(secret, { namespace, name: accountName, uid: account.metadata?.uid ?? '' }, name, run, options);
      return undefined;
    },
  };
}

/**
 * The service account with this name, and with the UID if one is given. An account that is missing in the local copy is
 * read from the server, because the copy may be outdated.
 */
async function accountOf({ client, read }: ReconcileRun, namespace: string, name: string, uid: string | undefined) {
  const isMeant = (account: ServiceAccount | undefined) => !uid || account?.metadata?.uid === uid;
  const known = read(ServiceAccount).get(`${namespace}/${name}`);
  if (known !== undefined && isMeant(known)) return known;
  try {
    const found = await client.resource(ServiceAccount).namespace(namespace).get(name);
    return isMeant(found) ? found : undefined;
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return undefined;
    throw error;
  }
}

async function remove({ metadata }: Secret, { client }: ReconcileRun): Promise<void> {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata ?? {};
  try {
    const preconditions = { uid, resourceVersion };
    await client.resource(Secret).namespace(namespace).delete(name, { preconditions });
  } catch (error) {
    // A conflict means that the Secret has changed; the change triggers another run.
    if (!isStatusError(error, StatusReason.NotFound) && !isStatusError(error, StatusReason.Conflict)) throw error;
  }
}

async function fill(
  secret: Secret,
  account: TokenAccount,
  name: string,
  { client }: ReconcileRun,
  { sign, authority }: TokenSecretsOptions,
): Promise<void> {
  const { data = {} } = secret;
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const added: Record<string, string> = {};
  if (!data['token']) added['token'] = base64(await sign(account, name));
  if (!data['namespace']) added['namespace'] = base64(account.namespace);
  const pem = authority?.();
  if (pem !== undefined && data['ca.crt'] !== base64(pem)) added['ca.crt'] = base64(pem);
  const hasUid = Boolean(secret.metadata?.annotations?.[uidAnnotation]);
  if (hasUid && Object.keys(added).length === 0) return;
  const annotations = { ...secret.metadata?.annotations, [uidAnnotation]: account.uid };
  const filled = { ...secret, metadata: { ...secret.metadata, annotations }, data: { ...data, ...added } };
  try {
    await client.resource(Secret).namespace(account.namespace).update(filled);
  } catch (error) {
    // The Secret was changed or deleted in the meantime, which triggers another run.
    if (!isStatusError(error, StatusReason.NotFound) && !isStatusError(error, StatusReason.Conflict)) throw error;
  }
}
