# No pod needs the Secret that all would share.
.[] | .metadata.name as $name | .spec.template?.spec.volumes[]?
| select(.secret.secretName == "tempmail-postgres") | "\($name) mounts tempmail-postgres"
