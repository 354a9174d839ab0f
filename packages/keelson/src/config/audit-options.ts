import { type AuditMode, type AuditOptions, auditModes } from '@keelson/access';
import { bool, integer, oneOf, UsageError } from '@keelson/core/internal';
import { type Declared, path } from './option-types.ts';

/** Options of the audit, with the names of kube-apiserver. */
export interface AuditFlags {
  /** File with the policy. Undefined: nothing is recorded. */
  readonly auditPolicyFile?: string;
  /** Log file; `-` stands for the standard output. */
  readonly auditLogPath?: string;
  readonly auditLogMode: AuditMode;
  /** Megabytes (2^20 bytes). */
  readonly auditLogMaxsize: number;
  readonly auditLogMaxbackup: number;
  /** Days. */
  readonly auditLogMaxage: number;
  readonly auditLogCompress: boolean;
  /** Kubeconfig of the server that receives the events. */
  readonly auditWebhookConfigFile?: string;
}

const file = path('FILE');
const megabyte = 1024 * 1024;
const dayMs = 86_400_000;

export const auditRows: { readonly [K in keyof AuditFlags]-?: Declared<AuditFlags[K] | undefined> } = {
  auditPolicyFile: {
    flag: '--audit-policy-file',
    variable: 'KEELSON_AUDIT_POLICY_FILE',
    type: file,
    default: undefined,
    help: 'audit.k8s.io/v1 Policy: which requests are recorded, and how much of them; without it nothing is recorded',
  },
  auditLogPath: {
    flag: '--audit-log-path',
    variable: 'KEELSON_AUDIT_LOG_PATH',
    type: {
      ...file,
      parse: (text, source) => (text === '-' ? '-' : file.parse(text, source)),
      fromFile: (raw, source, directory) => (raw === '-' ? '-' : file.fromFile(raw, source, directory)),
    },
    default: undefined,
    help: 'log of the audit events, one JSON object per line; - is the standard output',
  },
  auditLogMode: {
    flag: '--audit-log-mode',
    variable: 'KEELSON_AUDIT_LOG_MODE',
    type: oneOf('MODE', auditModes),
    default: 'batch',
    help: 'batch: written in the background; blocking: before a request continues; blocking-strict: or it is rejected',
  },
  auditLogMaxsize: {
    flag: '--audit-log-maxsize',
    variable: 'KEELSON_AUDIT_LOG_MAXSIZE',
    type: integer('MB', 1, 1_000_000),
    default: 100,
    help: 'size in megabytes at which the audit log is rotated',
  },
  auditLogMaxbackup: {
    flag: '--audit-log-maxbackup',
    variable: 'KEELSON_AUDIT_LOG_MAXBACKUP',
    type: integer('COUNT', 0, 1_000_000),
    default: 0,
    help: 'rotated audit logs that are kept; 0: all',
  },
  auditLogMaxage: {
    flag: '--audit-log-maxage',
    variable: 'KEELSON_AUDIT_LOG_MAXAGE',
    type: integer('DAYS', 0, 100_000),
    default: 0,
    help: 'age in days at which rotated audit logs are removed; 0: never',
  },
  auditLogCompress: {
    flag: '--audit-log-compress',
    variable: 'KEELSON_AUDIT_LOG_COMPRESS',
    type: bool,
    default: false,
    help: 'compress rotated audit logs with gzip',
  },
  auditWebhookConfigFile: {
    flag: '--audit-webhook-config-file',
    variable: 'KEELSON_AUDIT_WEBHOOK_CONFIG_FILE',
    type: file,
    default: undefined,
    help: 'kubeconfig of a server to which audit events are sent in batches',
  },
};

/** The options of the audit; undefined when nothing is recorded. @throws UsageError for a destination without policy */
export function auditOptions(flags: AuditFlags): AuditOptions | undefined {
  const { auditPolicyFile: policyFile, auditLogPath: logPath, auditWebhookConfigFile: webhookConfigFile } = flags;
  if (policyFile === undefined) {
    if (logPath === undefined && webhookConfigFile === undefined) return undefined;
    const given = logPath === undefined ? '--audit-webhook-config-file' : '--audit-log-path';
    throw new UsageError(`${given} requires --audit-policy-file; without a policy nothing is recorded`);
  }
  return {
    policyFile,
    ...(webhookConfigFile === undefined ? {} : { webhookConfigFile }),
    ...(logPath === undefined
      ? {}
      : {
          log: {
            path: logPath,
            mode: flags.auditLogMode,
            maxBytes: flags.auditLogMaxsize * megabyte,
            maxBackups: flags.auditLogMaxbackup,
            maxAgeMs: flags.auditLogMaxage * dayMs,
            compress: flags.auditLogCompress,
          },
        }),
  };
}
