/** Version of this package. */
export const keelsonVersion = '0.1.0';

/** What `/version` says: the API level that clients compare themselves with, and who serves it. */
export const apiVersionInfo = { major: '1', minor: '32', gitVersion: `v1.32.0+keelson.${keelsonVersion}` } as const;
