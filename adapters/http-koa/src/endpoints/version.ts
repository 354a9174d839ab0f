import { arch, platform, versions } from 'node:process';
import type { VersionInfo } from '../options.ts';

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** The body of `/version`: see docs/reference/api-rules.md#health-and-version. */
export function versionDocument(version: VersionInfo): Buffer {
  const document = {
    major: version.major,
    minor: version.minor,
    gitVersion: version.gitVersion,
    gitCommit: version.gitCommit ?? '',
    gitTreeState: version.gitTreeState ?? 'clean',
    buildDate: version.buildDate ?? '1970-01-01T00:00:00Z',
    goVersion: `node${versions.node}`,
    compiler: 'v8',
    platform: `${platform}/${architectures[arch] ?? arch}`,
  };
  return Buffer.from(JSON.stringify(document, null, 2));
}
