import { type FieldError, fieldError } from '@keelson/core';

const levels = ['privileged', 'baseline', 'restricted'] as const;
/** A Pod Security Standard, from the least to the most restrictive. */
export type Level = (typeof levels)[number];

/** A level as it is in one version of Kubernetes. Equal texts mean equal rules. */
export interface LevelVersion {
  readonly level: Level;
  /** Minor version of Kubernetes 1; infinite for `latest`. */
  readonly minor: number;
  /** As in messages: `baseline:latest`, `restricted:v1.30`. */
  readonly text: string;
}

/** What the labels of a namespace demand of its pods. */
export interface Policy {
  /** Pods that violate it are rejected. */
  readonly enforce: LevelVersion;
  /** Violations are annotated in audit events. */
  readonly audit: LevelVersion;
  /** Clients are warned of violations. */
  readonly warn: LevelVersion;
  /** Labels that cannot be read. */
  readonly errors: readonly FieldError[];
}

const newest = { minor: Number.POSITIVE_INFINITY, name: 'latest' };
const privileged: LevelVersion = { level: 'privileged', minor: newest.minor, text: 'privileged:latest' };
/** The policy of a namespace without labels of this plugin. */
export const unrestricted: Policy = { enforce: privileged, audit: privileged, warn: privileged, errors: [] };

const prefix = 'pod-security.kubernetes.io/';

/** Negative when `a` is less restrictive than `b`. */
export const compareLevels = (a: Level, b: Level): number => levels.indexOf(a) - levels.indexOf(b);

/** True when nothing is demanded of pods. */
export const isPrivileged = ({ enforce, audit, warn, errors }: Policy): boolean =>
  enforce.level === 'privileged' && audit.level === 'privileged' && warn.level === 'privileged' && errors.length === 0;

/**
 * Reads the labels of a namespace. What cannot be read enforces the strictest level, and neither warns nor audits.
 */
export function policyOf(labels: Readonly<Record<string, string>> | undefined): Policy {
  if (labels === undefined) return unrestricted;
  const errors: FieldError[] = [];
  const read = <T>(name: string, parse: (text: string) => T | undefined, detail: string): T | undefined => {
    const text = labels[`${prefix}${name}`];
    const value = text === undefined ? undefined : parse(text);
    if (text !== undefined && value === undefined) {
      errors.push(fieldError.invalid(`metadata.labels[${prefix}${name}]`, text, detail));
    }
    return value;
  };
  const readMode = (mode: string) => ({
    isSet: labels[`${prefix}${mode}`] !== undefined,
    level: read(mode, parseLevel, `must be one of ${levels.join(', ')}`),
    version: read(`${mode}-version`, parseVersion, 'must be "latest" or "v1.x"'),
  });
  const [enforce, audit, warn] = [readMode('enforce'), readMode('audit'), readMode('warn')];
  // Clients are warned of what is enforced, because workloads with such pods are accepted.
  const inherited = warn.isSet || enforce.level === 'privileged' ? undefined : enforce.level;
  const hasOwnVersion = labels[`${prefix}warn-version`] !== undefined;
  return {
    enforce: levelVersion(enforce.level ?? (enforce.isSet ? 'restricted' : 'privileged'), enforce.version),
    audit: levelVersion(audit.level ?? 'privileged', audit.version),
    warn: inherited
      ? levelVersion(inherited, hasOwnVersion ? warn.version : enforce.version)
      : levelVersion(warn.level ?? 'privileged', warn.version),
    errors,
  };
}

type Version = typeof newest;

const levelVersion = (level: Level, { minor, name }: Version = newest): LevelVersion => ({
  ...{ level, minor },
  text: `${level}:${name}`,
});

const parseLevel = (text: string): Level | undefined => levels.find((level) => level === text);

function parseVersion(text: string): Version | undefined {
  if (text === newest.name) return newest;
  const minor = /^v1\.(0|[1-9][0-9]{0,17})$/.exec(text)?.[1];
  return minor === undefined ? undefined : { minor: Number(minor), name: text };
}
