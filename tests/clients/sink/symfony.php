<?php
// Sends a mail with Symfony Mailer: php symfony.php HOST PORT RECIPIENT SUBJECT
require "Symfony/Component/Mailer/autoload.php";

[, $host, $port, $to, $subject] = $argv;
$transport = Symfony\Component\Mailer\Transport::fromDsn("smtp://$host:$port");
$mail = (new Symfony\Component\Mime\Email())->from("app@client.example")->to($to)->subject($subject)->text("Hello.");
try {
    (new Symfony\Component\Mailer\Mailer($transport))->send($mail);
} catch (Symfony\Component\Mailer\Exception\ExceptionInterface $error) {
    fwrite(STDERR, $error->getMessage());
    exit(1);
}
