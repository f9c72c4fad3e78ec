<?php
// Sends a mail with PHPMailer: php phpmailer.php HOST PORT RECIPIENT SUBJECT
require "libphp-phpmailer/autoload.php";

[, $host, $port, $to, $subject] = $argv;
$mail = new PHPMailer\PHPMailer\PHPMailer(true);
$mail->isSMTP();
$mail->Host = $host;
$mail->Port = (int) $port;
$mail->setFrom("app@client.example");
$mail->addAddress($to);
$mail->Subject = $subject;
$mail->Body = "Hello.";
try {
    $mail->send();
} catch (PHPMailer\PHPMailer\Exception $error) {
    fwrite(STDERR, $error->getMessage());
    exit(1);
}
