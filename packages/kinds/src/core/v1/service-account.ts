import { defineKind, type KindDefinition } from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { ServiceAccountSchema, type ServiceAccount as ServiceAccountType } from './schema/index.ts';

/** An identity for the processes in pods. */
export const ServiceAccount: KindDefinition<ServiceAccountType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  names: { shortNames: ['sa'] },
  schema: ServiceAccountSchema,
  strategy: {
    deleteReturnsObject: true,
    prepareForCreate(account, { warn }) {
      keepNamesOnly(account);
      warnOfMountableSecrets(account, undefined, warn);
    },
    prepareForUpdate(account, old, { warn }) {
      keepNamesOnly(account);
      warnOfMountableSecrets(account, old, warn);
    },
    export: dropTokens,
  },
  columns: [
    nameColumn(),
    column('Secrets', 'string', 'Number of secrets.', (account: ServiceAccountType) => account.secrets?.length ?? 0),
    ageColumn,
  ],
});
export type ServiceAccount = ServiceAccountType;

const mountableSecrets = 'kubernetes.io/enforce-mountable-secrets';

/** Warns when a write adds the annotation. */
function warnOfMountableSecrets(
  { metadata }: ServiceAccountType,
  old: ServiceAccountType | undefined,
  warn: (text: string) => void,
): void {
  if (metadata?.annotations?.[mountableSecrets] === undefined) return;
  if (old?.metadata?.annotations?.[mountableSecrets] !== undefined) return;
  const advice = 'prefer separate namespaces to isolate access to mounted secrets';
  warn(`metadata.annotations[${mountableSecrets}]: deprecated in v1.32+; ${advice}`);
}

/** Removes all fields but the name from references to secrets. */
function keepNamesOnly(account: ServiceAccountType): void {
  if (account.secrets) account.secrets = account.secrets.map(({ name }) => (name === undefined ? {} : { name }));
}

/** Removes generated tokens, which are specific to a cluster. Their names identify them. */
function dropTokens(account: ServiceAccountType, exact: boolean): void {
  const prefix = `${account.metadata?.name ?? ''}-token-`;
  if (exact || !account.secrets) return;
  const kept = account.secrets.filter(({ name }) => !name?.startsWith(prefix));
  if (kept.length > 0) account.secrets = kept;
  else delete account.secrets;
}
